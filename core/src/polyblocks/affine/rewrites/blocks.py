"""Loops cut into blocks."""

from __future__ import annotations

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import For, transform_indices


def in_blocks(loop: For, length: int) -> For:
    """A loop over blocks of a loop's iterations, whose body is a loop over those of one block.

    The last block is shorter where the iterations are no multiple of ``length``. The body moves:
    the old loop is not to be used any more.

    Args:
        loop: without bounds and without carried values.
        length: iterations of a block.
    """
    extent = loop.var.extent
    outer, inner = Var(-(-extent // length), loop.var.name), Var(length)
    begin = Expr.of(outer) * length
    transform_indices(loop.body, lambda e: e.substitute({loop.var: begin + Expr.of(inner)}))
    upper = (Expr(extent) - begin,) if extent % length else ()
    return For(outer, [For(inner, loop.body, upper=upper)], level=loop.level)
