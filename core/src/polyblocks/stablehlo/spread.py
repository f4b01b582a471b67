"""Operands of generics: tensors, but not constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyblocks.stablehlo import code
from polyblocks.stablehlo.array import Array
from polyblocks.stablehlo.lowering import Lowering, Operand


def spread(
    lowering: Lowering, arrays: Sequence[Array], loops: Sequence[Any]
) -> tuple[list[Operand], Callable[[Sequence[Any]], list[Any]]]:
    """Operands of a generic for arrays, and what makes their scalars of those loaded.

    Constants are no operands.
    """
    operands = [lowering.operand(a, loops) for a in arrays if a.splat is None]

    def scalars(loaded: Sequence[Any]) -> list[Any]:
        rest = iter(loaded)
        return [
            next(rest) if a.splat is None else code.constant(a.element, a.splat) for a in arrays
        ]

    return operands, scalars
