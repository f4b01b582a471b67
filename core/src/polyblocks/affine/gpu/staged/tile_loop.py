"""Loops over the tiles of a reduction."""

from __future__ import annotations

from collections.abc import Callable

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import For, Node, Value

#: Writes the nodes of a tile: its number, the sum before it, and where the nodes go; the sum after.
Tile = Callable[[Expr, Value, list[Node]], Value]


def over_tiles(tiles: range, total: Value, out: list[Node], tile: Tile) -> Value:
    """Tiles that a loop is for, or one that is written out; the sum behind them."""
    if len(tiles) < 2:
        for number in tiles:
            total = tile(Expr(number), total, out)
        return total
    var = Var(len(tiles), "t")
    carried, after = Value(total.type), Value(total.type)
    body: list[Node] = []
    yielded = tile(Expr.of(var) + tiles.start, carried, body)
    out.append(For(var, body, [total], [carried], [after], [yielded]))
    return after
