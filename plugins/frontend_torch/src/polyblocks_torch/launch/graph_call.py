"""A compiled graph as a function, without the wrappers of AOTAutograd and Dynamo around it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class GraphCall:
    """A graph that has been compiled.

    Attributes:
        call: a function of the graph's arguments, one after another, that returns the tuple of its
            outputs.
        output_count: how many these are.
        machine_code: the address of the code of ``call``, of the protocol ``METH_FASTCALL |
            METH_KEYWORDS`` with ``call.__self__`` first; 0: it is Python.
        forwarded: the number of the argument that is the only output; None: it is not so.
    """

    call: Callable[..., tuple[Any, ...]]
    output_count: int
    machine_code: int = 0
    forwarded: int | None = None
