"""The lowered form of a StableHLO array: a tensor, or a delayed one."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from polyblocks.stablehlo.element import Element

#: Integers that are known are remembered up to this many, for loop bounds, starts and rotations.
MOST_NUMBERS = 64

Range = tuple[int, int]


@dataclass(eq=False)
class Array:
    """An array while it is being lowered; at least one of the optional attributes is set.

    Attributes:
        shape: extents.
        element: element type, with signedness.
        tensor: the MLIR tensor.
        splat: the one number that all elements are; an array without elements may have none.
        numbers: all elements of a small constant of integers or truth values.
        base: what it is broadcast from ...
        dims: ... and for each dimension of that the one of this, None where its extent is 1.
        pieces: what lies behind each other in it ...
        along: ... and the dimension along which it does.
        scalar: the MLIR scalar that the only element of a rank-0 array is.
        range: least and greatest value that an integer of rank 0 can have.
        iota: the dimension along which every element is its own position, if there is one.
    """

    shape: tuple[int, ...]
    element: Element
    tensor: Any = None
    splat: Any = None
    numbers: np.ndarray[Any, Any] | None = None
    base: Array | None = None
    dims: tuple[int | None, ...] = ()
    pieces: tuple[Array, ...] = ()
    along: int = 0
    scalar: Any = None
    range: Range | None = None
    iota: int | None = None

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def numel(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def type(self) -> Any:
        """The MLIR tensor type."""
        return self.element.tensor(self.shape)

    @property
    def known(self) -> np.ndarray[Any, Any] | None:
        """The elements, if they are few known integers."""
        if self.numbers is not None:
            return self.numbers
        if isinstance(self.splat, (int, bool)) and self.numel <= MOST_NUMBERS:
            return np.full(self.shape, self.splat, dtype=object)
        return None

    @property
    def number(self) -> int | None:
        """The known integer of a rank-0 array."""
        known = None if self.rank else self.known
        return None if known is None else int(known[()])

    @property
    def bounds(self) -> Range | None:
        """Least and greatest value of a rank-0 integer, where known."""
        number = self.number
        return self.range if number is None else (number, number)


def known_array(element: Element, numbers: Any) -> Array:
    """A small constant of integers or truth values, wrapped to the type's width."""
    array = np.asarray(numbers, dtype=object)
    wrap = np.frompyfunc(lambda v: wrapped(element, v), 1, 1)
    array = np.asarray(wrap(array), dtype=object)
    flat = array.reshape(-1)
    if array.size and all(v == flat[0] for v in flat):
        return Array(array.shape, element, splat=flat[0])
    return Array(array.shape, element, numbers=array)


def wrapped(element: Element, value: Any) -> int | bool:
    """An integer modulo the width of its type, with its sign."""
    if element.is_bool:
        return bool(value)
    value = int(value) & ((1 << element.width) - 1)
    if not element.is_unsigned and value >> (element.width - 1):
        value -= 1 << element.width
    return value
