"""Loads that fetch ahead: the next tile comes into a cache while this one is computed."""

from __future__ import annotations

from math import prod
from typing import Any

from polyblocks.affine.access import stride_along
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import Buffer, For, Load, Nest, Node, walk

#: The part of a cache that the next tile may take of it, beside the tile itself.
CACHE_PART = 4


def mark_prefetches(nest: Nest, target: Any) -> None:
    """Let the last sweep over a tile of a buffer fetch the same place of the next tile.

    A tile that is swept several times is in a cache from the first time on; the memory rests then,
    and the first sweep of the next tile waits for it. Hardware fetches ahead within a page at most,
    of which rows of matrices often are one.

    Args:
        nest: loops around a body of several loops, which are marked as vectors already.
        target: its TargetDescription.
    """
    caches = [level for level in target.memory if level.size]
    import os

    if len(caches) < 2 or os.environ.get("NOPF"):
        return
    tile, body = _tile_loop(nest)
    if tile is None:
        return
    sweeps = [node for node in body if isinstance(node, For)]
    last: dict[Buffer, For] = {}
    swept: set[Buffer] = set()
    for sweep in sweeps:
        for buffer in {n.buffer for n in walk([sweep]) if isinstance(n, Load)}:
            if buffer in last:
                swept.add(buffer)
            last[buffer] = sweep
    for buffer in swept:
        if buffer.kind == "local" or buffer.nbytes <= caches[-2].size:
            continue
        found = _walked(last[buffer], buffer, tile.var)
        if found is None:
            continue
        load, step, nbytes = found
        levels = [i for i, cache in enumerate(caches[:2]) if nbytes <= cache.size // CACHE_PART]
        if levels:
            load.ahead, load.ahead_level = step, levels[0]


def _tile_loop(nest: Nest) -> tuple[For | None, list[Node]]:
    """The innermost loop that is alone in the one around it, and what is in it."""
    tile: For | None = None
    body = nest.body
    while len(body) == 1 and isinstance(body[0], For) and not body[0].inits:
        tile = body[0]
        body = tile.body
    return tile, body


def _walked(sweep: For, buffer: Buffer, tile: Var) -> tuple[Load, tuple[int, ...], int] | None:
    """A load of the buffer in vectors, what leads from it to the next tile, and a tile's bytes."""
    around: list[For] = []
    nodes = [sweep]
    while len(nodes) == 1 and isinstance(nodes[0], For):
        around.append(nodes[0])
        nodes = nodes[0].body  # type: ignore[assignment]
    inner = around[-1]
    if inner.simd is None or inner.simd.square:
        return None
    for node in inner.body:
        if not isinstance(node, Load) or node.buffer is not buffer:
            continue
        if stride_along(buffer, node.index, inner.var) != 1:
            continue
        steps = [_step(expr, tile) for expr in node.index]
        if None in steps or not any(steps):
            continue
        moving = [loop.trips for loop in around if stride_along(buffer, node.index, loop.var) != 0]
        return node, tuple(steps), prod(moving) * buffer.bytes_per_element  # type: ignore[arg-type]
    return None


def _step(expr: Expr, tile: Var) -> int | None:
    return expr.coefficient(tile)
