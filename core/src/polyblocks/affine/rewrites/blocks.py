"""Loops cut into blocks."""

from __future__ import annotations

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import For, transform_indices


def block_bounds(number: Var, extent: int, length: int) -> tuple[Expr, tuple[Expr, ...]]:
    """Where a block of a loop's iterations begins, and the upper bounds of a loop over them.

    The last block is shorter, and the loop bounded, where ``length`` does not divide ``extent``.

    Args:
        number: the number of the block.
        extent: iterations of the loop that is cut.
        length: iterations of a block.
    """
    begin = Expr.of(number) * length
    return begin, (Expr(extent) - begin,) if extent % length else ()


def in_blocks(loop: For, length: int) -> For:
    """A loop over blocks of a loop's iterations, whose body is a loop over those of one block.

    The body moves: the old loop is not to be used any more.

    Args:
        loop: without bounds and without carried values.
        length: iterations of a block.
    """
    extent = loop.var.extent
    outer, inner = Var(-(-extent // length), loop.var.name), Var(length)
    begin, upper = block_bounds(outer, extent, length)
    transform_indices(loop.body, lambda e: e.substitute({loop.var: begin + Expr.of(inner)}))
    return For(outer, [For(inner, loop.body, upper=upper)], level=loop.level)
