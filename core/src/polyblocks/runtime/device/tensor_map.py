"""Descriptions of arrays that kernels copy parts of, for a vendor's driver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: Kinds of copies: of boxes, and of pixels that windows are at.
TILED, IM2COL = "tiled", "im2col"
KINDS = (TILED, IM2COL)


@dataclass(frozen=True)
class TensorMap:
    """An array that kernels copy parts of, the innermost dimension first.

    Attributes:
        place: of its first element: a slot of a plan, or an address; None: it is no longer there.
        element_bytes: of an element.
        extents: of the dimensions.
        strides: bytes between neighbours along each dimension but the first.
        box: extents of what is copied at once; of windows it is channels and pixels.
        kind: one of :data:`KINDS`.
        lower: of each dimension of pixels, which are all but the first and the last one, the least
            place of a window's first element.
        upper: the largest one, from the last place on.
        steps: places from one window to the next.
    """

    place: Any
    element_bytes: int
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    kind: str = TILED
    lower: tuple[int, ...] = ()
    upper: tuple[int, ...] = ()
    steps: tuple[int, ...] = ()

    @classmethod
    def read(cls, described: Mapping[str, Any], place: Any) -> TensorMap:
        """The description that a plan has, of an array at a place."""
        numbers = ("extents", "strides", "box", "lower", "upper", "steps")
        return cls(
            place=place,
            element_bytes=int(described["element_bytes"]),
            kind=described.get("kind", TILED),
            **{key: tuple(described.get(key, ())) for key in numbers},
        )
