"""A target's description of its vendor's driver, for libraries for C."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Vendor:
    """A vendor's driver.

    Attributes:
        name: of the driver, in the header.
        stream: its type of streams, in the header.
        read_source: gives ``vendor.h``; what that must have is said in ``driver.h`` of this room.
    """

    name: str
    stream: str
    read_source: Callable[[], bytes]
