"""The padding of an operation: where the elements of an array are among zeros.

A frontend says it of the products of a convolution, in the body of the ``linalg.generic``::

    %p = arith.mulf %a, %b {polyblocks.padded = {first = array<i64: 0, 1>, size = array<i64: 4, 8>,
                                                 step = array<i64: 1, 2>}} : f32

The first factor is an element of an array in which 4 x 8 elements stand at ``[i, 1 + 2 * j]``; all
others are zeros, which no other operation put there. Operations in bodies keep their attributes
until there are loops. Those on tensors lose them: upstream makes other operations of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from polyblocks.attributes import PADDED_ATTRIBUTE
from polyblocks.mlir import ir


@dataclass(frozen=True)
class Padded:
    """The elements of an array between zeros, for each of its dimensions.

    Attributes:
        first: the index of the first element.
        size: how many elements there are.
        step: from one element to the next.
    """

    first: tuple[int, ...]
    size: tuple[int, ...]
    step: tuple[int, ...]

    @property
    def box(self) -> tuple[tuple[int, int], ...]:
        """The box around the elements, as their first index and end in each dimension."""
        dims = zip(self.first, self.size, self.step, strict=True)
        return tuple((first, first + (size - 1) * step + 1) for first, size, step in dims)

    def mark(self, product: Any) -> None:
        """Say of a multiplication that its first factor is such an element."""
        numbers = {"first": self.first, "size": self.size, "step": self.step}
        product.attributes[PADDED_ATTRIBUTE] = ir.DictAttr.get(
            {name: ir.DenseI64ArrayAttr.get(list(values)) for name, values in numbers.items()}
        )

    @classmethod
    def of(cls, attribute: Any) -> Padded:
        """The inverse of :meth:`mark`.

        Raises:
            ValueError: it is something else.
        """
        given = {a.name: a.attr for a in attribute} if isinstance(attribute, ir.DictAttr) else {}
        lists = {n: list(a) for n, a in given.items() if isinstance(a, ir.DenseI64ArrayAttr)}
        fits = lists.keys() == given.keys() == {"first", "size", "step"}
        if not fits or len({len(numbers) for numbers in lists.values()}) != 1:
            raise ValueError(
                f"{PADDED_ATTRIBUTE} is a dictionary of 'first', 'size' and 'step', each an "
                f"array<i64> with a number for each dimension of the array; got {attribute}"
            )
        if min(*lists["size"], *lists["step"]) < 1 or min(lists["first"]) < 0:
            raise ValueError(
                f"{PADDED_ATTRIBUTE} has sizes and steps from 1 and first indices from 0; got "
                f"{attribute}"
            )
        return cls(*(tuple(lists[name]) for name in ("first", "size", "step")))
