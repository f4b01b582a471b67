"""Loads of neighbours: a window that slides along a row is in two vectors already."""

from __future__ import annotations

from dataclasses import dataclass

from polyblocks.affine.access import stride_along
from polyblocks.affine.expr import Expr
from polyblocks.affine.model import Buffer, For, Load, Store

#: Vectors that are made of the lanes of two others, for each row. A permutation of lanes takes as
#: long as an unaligned load, but not the same units: some of both are faster than all of one kind.
SHUFFLES = 2


@dataclass(frozen=True)
class Window:
    """Loads of a row at several constant offsets, the first ones of all that there are.

    Attributes:
        buffer: what is loaded.
        index: where the first of them is.
        reach: how far the last one is from the first one.
    """

    buffer: Buffer
    index: tuple[Expr, ...]
    reach: int


def windows(loop: For, width: int, line: int) -> dict[Load, tuple[Window, int]]:
    """The window of each load that is taken from one, and its offset there.

    A vector as long as a line of the cache lies in two lines unless it is aligned, so that a load
    at an offset takes twice the time. The vectors at the first offsets of a window are lanes of the
    first one and of the one behind it. Buffers that the loop stores to are left alone.

    Args:
        loop: an innermost loop, whose iterations are lanes.
        width: lanes of a vector.
        line: bytes of a line.
    """
    stored = {node.buffer.base for node in loop.body if isinstance(node, Store)}
    rows: dict[tuple[Buffer, tuple[Expr, ...]], list[Load]] = {}
    for node in loop.body:
        if not isinstance(node, Load) or node.buffer.base in stored:
            continue
        if width * node.buffer.bytes_per_element < line:
            continue
        if stride_along(node.buffer, node.index, loop.var) == 1:
            *outer, last = node.index
            rows.setdefault((node.buffer, (*outer, last - last.const)), []).append(node)
    found: dict[Load, tuple[Window, int]] = {}
    for (buffer, index), loads in rows.items():
        offsets = sorted({load.index[-1].const for load in loads})[: SHUFFLES + 1]
        reach = offsets[-1] - offsets[0]
        if len(offsets) <= SHUFFLES or reach > width:
            continue
        window = Window(buffer, (*index[:-1], index[-1] + offsets[0]), reach)
        for load in loads:
            if load.index[-1].const in offsets:
                found[load] = window, load.index[-1].const - offsets[0]
    return found
