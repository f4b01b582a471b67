"""Prefetches: what the next sweep needs comes into a cache while this one computes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Any

from polyblocks.affine import operation_cost as cost
from polyblocks.affine.access import address, stride_along
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    AffineAccess,
    Buffer,
    For,
    Index,
    IndirectLoad,
    Load,
    Nest,
    Node,
    Prefetch,
    Store,
    local_buffers,
    walk,
)
from polyblocks.affine.subnests import tile_of

#: Bytes that a sweep reads ahead at least, if it goes from row to row.
AHEAD = 4096
#: The same of what is read once and shall not stay in the last cache.
PASSING = 8192
#: As the level of a prefetch: no cache but the nearest keeps the line.
NO_CACHE = 3
#: Bytes from a step to the next one from which on hardware does not read a register tile's columns
#: ahead. 8 x 4096 x 1000 on one core of a Zen 4, 4,000 bytes: 3.4 ms without prefetches, 0.7 with.
APART = 1024
#: A sweep that stores less than the longest one, by this factor, does not count.
MINOR = 4
#: A cache is asked to take this part of its size ahead at most, beside what is in use.
CACHE_PART = 4
#: The part of a cache in which a tile and what all tiles read have room together.
TILE_PART = 0.75


def mark_prefetches(nest: Nest, target: Any) -> None:
    """Let sweeps over a tile fetch what comes after them.

    After the first pass over a tile it is cached and DRAM idles, and the first pass of the next
    tile waits for it. Hardware prefetches within a page, which is often one row of a matrix. So the
    longest sweep that reads a buffer again fetches the same place of the next tile, the only one
    fetches the next rows of its tile, and the longest one in front of a sweep that stores fetches
    the lines that will be stored to.

    Args:
        nest: loops around a body of several loops, which are marked as vectors already.
        target: its TargetDescription.
    """
    caches = [level for level in target.memory if level.size]
    if len(caches) < 2:
        return
    loops, body = tile_of(nest.body)
    if not loops:
        return
    tile = loops[-1]
    sweeps = [sweep for node in body if (sweep := _Sweep.of(node)) is not None]
    # Small loops, as of borders, do not count.
    most = max((sweep.elements for sweep in sweeps), default=0)
    sweeps = [sweep for sweep in sweeps if MINOR * sweep.elements >= most]
    if len(sweeps) < 2:
        return
    for buffer in dict.fromkeys(b for sweep in sweeps for b in sweep.buffers):
        if _is_near(buffer, caches):
            continue
        users = [sweep for sweep in sweeps if buffer in sweep.buffers]
        again = [sweep for sweep in users[1:] if isinstance(sweep.walking(buffer), Load)]
        if again:
            longest = max(reversed(again), key=lambda s: cost.operations(s.inner.body))
            _next_tile(longest, buffer, tile.var, caches)
        elif not _next_row(users[0], buffer, caches) and users[0] is not sweeps[0]:
            _stored_later(users[0], buffer, sweeps[: sweeps.index(users[0])], caches)


def _is_near(buffer: Buffer, caches: list[Any]) -> bool:
    """Whether a buffer is a tile's own, or has room in the caches before the last one."""
    return buffer.kind == "local" or buffer.nbytes <= caches[-2].size


def mark_passing(loop: For, target: Any) -> None:
    """Let a loop with a guarded store read what it needs once past the last cache.

    The lines that it stores to, in any order, have more room there then. Hardware that reads ahead
    must not come first. 4M updates by two cores of a Zen 4: 10.1 ms without, 7.8 from 8 KiB ahead,
    8.2 from 4.

    Args:
        loop: whose iterations are lanes.
        target: its TargetDescription.
    """
    caches = [level for level in target.memory if level.size]
    if len(caches) < 2:
        return
    for node in loop.body:
        if isinstance(node, Load) and stride_along(node.buffer, node.index, loop.var) == 1:
            if _is_near(node.buffer, caches):
                continue
            *outer, last = node.index
            ahead = (*outer, last + PASSING // node.buffer.bytes_per_element)
            loop.prefetches.append(Prefetch(node.buffer, ahead, False, NO_CACHE))


def mark_next_columns(lanes: For, target: Any) -> None:
    """Let a register tile fetch the columns of the next ones, where steps are far apart in memory.

    So it is with columns that are used where they are. Hardware fetches neither across pages nor as
    many streams at a time as there are steps, which then wait one after the other.

    Args:
        lanes: the loop whose iterations are the tile's columns, around the steps.
        target: its TargetDescription.
    """
    caches = [level for level in target.memory if level.size]
    if len(caches) < 2:
        return
    for loop in walk(lanes.body):
        if not isinstance(loop, For) or not loop.inits or loop.bounded:
            continue
        for node in loop.body:
            if not isinstance(node, Load) or stride_along(node.buffer, node.index, lanes.var) != 1:
                continue
            size = node.buffer.bytes_per_element
            step = (stride_along(node.buffer, node.index, loop.var) or 0) * size
            if _is_near(node.buffer, caches) or step < APART:
                continue
            columns = lanes.lanes * size
            tiles = -(-2 * AHEAD // (columns * loop.var.extent))
            *outer, last = node.index
            ahead = (*outer, last + tiles * lanes.lanes)
            # Into the second: the first one can wait for few lines at a time, and loads need them.
            loop.prefetches.append(Prefetch(node.buffer, ahead, False, 1))


def mark_next_panel(nest: Nest, lanes: For, around: list[For], target: Any) -> None:
    """Let a register tile fetch the next panel of columns, which is used for the first time then.

    The rows of a panel's first tile are too few for the time that its columns take to come from
    memory; those of all tiles are not. Panels of one tile each are one stream, which hardware
    reads ahead by itself.

    Args:
        nest: that the tile is in; what it copies for itself is near already.
        lanes: the loop whose iterations are the tile's columns, around the steps.
        around: the loops around it, from the outside in.
        target: its TargetDescription.
    """
    caches = [level for level in target.memory if level.size]
    if len(caches) < 2:
        return
    made = {n.buffer.base for n in walk(tile_of(nest.body)[1]) if isinstance(n, Store)}
    own = sum(buffer.nbytes for buffer in local_buffers(nest.body))
    # The remaining rows have another tile behind.
    tiles = next((n for n in lanes.body if isinstance(n, For)), None)
    if tiles is None or tiles.inits or tiles.trips < 2 or lanes.var.extent != lanes.lanes:
        return
    for steps in walk(tiles.body):
        if not isinstance(steps, For) or not steps.inits:
            continue
        for node in steps.body:
            if not isinstance(node, Load) or node.buffer.base in made:
                continue
            far = not _is_near(node.buffer, caches)
            # A cache without room for a panel of all tiles beside a tile's own arrays loses it.
            far = far or node.buffer.kind == "local" and own > TILE_PART * caches[-2].size
            panel = _panel_loop(node, steps, lanes, around, caches) if far else None
            if panel is not None:
                line = target.memory[0].line // node.buffer.bytes_per_element
                steps.prefetches += _lines_of_next(node, panel, lanes, tiles, max(1, line))


def _panel_loop(
    node: Load, steps: For, lanes: For, around: list[For], caches: list[Any]
) -> Var | None:
    """The loop over panels, if a load is of columns in one."""
    buffer, size = node.buffer, node.buffer.bytes_per_element
    if stride_along(buffer, node.index, steps.var) != lanes.lanes:
        return None
    if stride_along(buffer, node.index, lanes.var) != 1:
        return None
    moved = {v for e in node.index for v in e.variables()}
    panel = next((loop.var for loop in reversed(around) if loop.var in moved), None)
    if panel is None:
        return None
    nbytes = (stride_along(buffer, node.index, panel) or 0) * size
    return panel if 0 < nbytes <= caches[-2].size // CACHE_PART else None


def _lines_of_next(node: Load, panel: Var, lanes: For, tiles: For, line: int) -> list[Prefetch]:
    """The prefetches of one step of a tile: its share of a step's lines, of the next panel.

    Args:
        node: the load of the columns.
        panel: the variable of the panels.
        lanes: the loop of the columns.
        tiles: the loop over tiles of rows.
        line: elements of a line.
    """
    lines = -(-lanes.lanes // line)
    again = not any(tiles.var in set(e.variables()) for e in node.index)
    share = -(-lines // tiles.trips) if again else lines
    found: list[Prefetch] = []
    for k in range(share):
        turn = (Expr.of(tiles.var) * share + k) % lines if again else Expr(k)
        at = {panel: Expr.of(panel) + 1, lanes.var: turn * line}
        index = tuple(e.substitute(at) for e in node.index)
        found.append(Prefetch(node.buffer, index, False, 1))
    return found


def mark_rows_below(nest: Nest, lanes: For, target: Any) -> None:
    """Let a register tile fetch the rows of the one below it, which another core may have stored.

    Where threads share columns, each reads all rows, and most are in the private cache of the core
    that has stored them: a core has too few loads ahead to wait for as many rows as a tile has.
    Others are weights, which come from memory. Each step fetches its share of the rows. They are
    near for all panels but the first one then, and to ask again costs next to nothing. 48 products
    of 128 x 768 x 768 behind each other on two cores of a Zen 4: 705 us each without, 667 with; one
    of 128 x 3072 x 768, whose rows are weights, in GPT-2: 2.78 ms without, 2.70 with.

    Args:
        nest: that the tile is in; what it copies for itself is near already.
        lanes: the loop whose iterations are the tile's columns, around the steps.
        target: its TargetDescription.
    """
    caches = [level for level in target.memory if level.size]
    tiles = next((n for n in lanes.body if isinstance(n, For)), None)
    if len(caches) < 2 or tiles is None or tiles.inits or tiles.trips < 2:
        return
    made = {n.buffer.base for n in walk(tile_of(nest.body)[1]) if isinstance(n, Store)}
    for loops in _step_loops(tiles):
        rows: dict[Buffer, list[Load]] = {}
        for node in loops[-1].body:
            if not isinstance(node, Load) or node.buffer.base in made:
                continue
            if stride_along(node.buffer, node.index, lanes.var) == 0:
                rows.setdefault(node.buffer, []).append(node)
        for buffer, loads in rows.items():
            # The nearest cache keeps rows that it has room for.
            apart = None if buffer.nbytes <= caches[0].size else _rows_apart(loads, tiles, loops)
            if apart is None:
                continue
            at = {tiles.var: Expr.of(tiles.var) + 1, **{loop.var: Expr(0) for loop in loops}}
            *outer, last = (e.substitute(at) for e in loads[0].index)
            run = prod(loop.var.extent for loop in loops)
            line = max(1, target.memory[0].line // buffer.bytes_per_element)
            step = Expr(0)
            for loop in loops:
                step = step * loop.var.extent + loop.var
            share = step * len(loads)
            place = last + share + share // run * (apart - run)
            loops[-1].prefetches += [
                Prefetch(buffer, (*outer, place + ahead), False, 1)
                for ahead in range(0, len(loads), line)
            ]


def _step_loops(tiles: For) -> list[list[For]]:
    """The loops inside of one over register tiles, down to each that carries sums."""
    found: list[list[For]] = []

    def visit(nodes: list[Node], around: list[For]) -> None:
        for node in nodes:
            if isinstance(node, For):
                if node.inits:
                    found.append([*around, node])
                else:
                    visit(node.body, [*around, node])

    visit(tiles.body, [])
    return found


def _rows_apart(loads: list[Load], tiles: For, loops: list[For]) -> int | None:
    """Elements between rows of a tile, and of the next one; None if steps are not side by side."""
    first, *others = [address(load.buffer, load.index) for load in loads]
    run = 1
    for loop in reversed(loops):
        if loop.bounded or first.coefficient(loop.var) != run:
            return None
        run *= loop.var.extent
    below = first.coefficient(tiles.var)
    if below is None or below % len(loads) or below < run * len(loads):
        return None
    apart = below // len(loads)
    even = all(other - first == Expr((k + 1) * apart) for k, other in enumerate(others))
    return apart if even else None


def mark_next_rows(
    loop: For, gathered: Iterable[IndirectLoad], around: list[For], target: Any
) -> None:
    """Let lanes that look numbers up in a row fetch the next row, whose lines they all need.

    They jump to and fro in it, which hardware does not read ahead, and a gather that waits for
    lines keeps a core from looking further: 16,384 x 256 of rows of 256 on one core of a Zen 4 take
    5.4 ms without prefetches, 2.6 with.

    Args:
        loop: an innermost loop, which is marked as vectors.
        gathered: its loads with an index of their own in every lane, the others being the same.
        around: the loops around it, from the outside in.
        target: its TargetDescription.
    """
    caches = [level for level in target.memory if level.size]
    if len(caches) < 2 or not around or loop.bounded:
        return
    makers = {n.result: n for n in walk([around[0]]) if isinstance(n, Index)}
    fetched: set[tuple[Buffer, tuple[Expr, ...]]] = set()
    for node in gathered:
        buffer = node.buffer
        places = [makers.get(value) for value in node.index[:-1]]
        if _is_near(buffer, caches) or any(place is None for place in places):
            continue
        row = tuple(place.expr for place in places if place is not None)
        moved = {v for e in row for v in e.variables()}
        outer = next((n.var for n in reversed(around) if n.var in moved), None)
        nbytes = buffer.shape[-1] * buffer.bytes_per_element
        levels = [i for i, c in enumerate(caches[:2]) if nbytes <= c.size // CACHE_PART]
        line = target.memory[0].line // buffer.bytes_per_element
        few = loop.trips * line < buffer.shape[-1]
        # Of a row that is used very often it does not matter how it comes.
        often = loop.trips > MINOR * buffer.shape[-1]
        if outer is None or not levels or few or often or (buffer, row) in fetched:
            continue
        fetched.add((buffer, row))
        ahead = tuple(e.substitute({outer: Expr.of(outer) + 1}) for e in row)
        share = -(-buffer.shape[-1] // loop.trips)
        assert loop.simd is not None
        loop.prefetches += [
            Prefetch(
                buffer, (*ahead, Expr.of(loop.var) * share + k * loop.simd.width), False, levels[0]
            )
            for k in range(share)
        ]


def mark_copied_rows(nest: Nest, loop: For, around: list[For], target: Any) -> None:
    """Let a loop that copies parts of rows into panels fetch those of the next rows.

    Hardware reads ahead within a row and begins anew at each, and nothing else is computed while a
    copy waits. 256 x 1024 sums of 1024 products each on two cores of a Zen 4, with both operands
    copied: 2.77 ms without, 2.65 with.

    Args:
        nest: that the loop is in, which reads the panels in other loops.
        loop: an innermost loop, which is marked as vectors.
        around: the loops around it, from the outside in.
        target: its TargetDescription.
    """
    caches = [level for level in target.memory if level.size]
    stored = {node.buffer.base for node in loop.body if isinstance(node, Store)}
    if len(caches) < 2 or loop.inits or not stored:
        return
    loads = [node for node in loop.body if isinstance(node, Load)]
    others = [n for n in walk(nest.body) if isinstance(n, Load) and n not in loads]
    if not stored <= {node.buffer.base for node in others}:
        return
    made = {node.buffer.base for node in walk(nest.body) if isinstance(node, Store)}
    for node in loads:
        if node.buffer.base in made or node.buffer.nbytes <= caches[0].size:
            continue
        if stride_along(node.buffer, node.index, loop.var) != 1:
            continue
        # The loops that go along a row, up to the one that goes from row to row.
        run, rows = loop.var.extent, None
        for outer in reversed(around):
            step = stride_along(node.buffer, node.index, outer.var)
            if step != run:
                rows = outer.var if step is not None and step > run else None
                break
            run *= outer.var.extent
        nbytes = run * node.buffer.bytes_per_element
        if rows is None or nbytes > caches[1].size // CACHE_PART:
            continue
        ahead = Expr.of(rows) + max(1, AHEAD // nbytes)
        index = tuple(e.substitute({rows: ahead}) for e in node.index)
        loop.prefetches.append(Prefetch(node.buffer, index, False, 1))


@dataclass
class _Sweep:
    """Loops, nested perfectly, around vectors; and the buffers that are accessed in them."""

    loops: list[For]
    buffers: dict[Buffer, None]

    @classmethod
    def of(cls, node: Node) -> _Sweep | None:
        """The sweep that a loop is; None for anything else."""
        loops: list[For] = []
        while isinstance(node, For):
            loops.append(node)
            inner = [n for n in node.body if isinstance(n, For)]
            if not inner:
                break
            if len(inner) > 1:
                return None
            (node,) = inner
        if not loops or loops[-1].simd is None or loops[-1].simd.square:
            return None
        nodes = walk([loops[0]])
        return cls(loops, dict.fromkeys(n.buffer for n in nodes if isinstance(n, AffineAccess)))

    @property
    def elements(self) -> int:
        """Upper bound of the iterations of all its loops; each may store several rows."""
        stores = sum(isinstance(node, Store) for node in self.inner.body)
        return prod(loop.trips for loop in self.loops) * max(stores, 1)

    @property
    def inner(self) -> For:
        """The loop that is written in vectors."""
        return self.loops[-1]

    def walking(self, buffer: Buffer) -> AffineAccess | None:
        """The access to neighbours of the buffer that is furthest on; None if stores stream."""
        found: list[tuple[int, AffineAccess]] = []
        for node in self.inner.body:
            if not isinstance(node, AffineAccess) or node.buffer is not buffer:
                continue
            if isinstance(node, Store) and node.stream:
                return None
            if stride_along(buffer, node.index, self.inner.var) == 1:
                found.append((address(buffer, node.index).const, node))
        return max(found, key=lambda pair: pair[0])[1] if found else None

    def leading(self, buffer: Buffer) -> list[Load]:
        """A load of each row that no iteration has read before; empty if unknown.

        A row is read before if another load is as far behind it as an earlier iteration is.
        """
        rows: dict[tuple[int, ...], Load] = {}
        shapes = set()
        for node in self.inner.body:
            if isinstance(node, Load) and node.buffer is buffer:
                *outer, last = node.index
                shapes.add((*(e.terms for e in outer), last.terms))
                rows.setdefault(tuple(e.const for e in outer), node)
        if len(shapes) != 1:
            return []
        # By dimension: which of the loops moves it, and how far in an iteration.
        steps: dict[int, tuple[int, int]] = {}
        *outer, last = next(iter(rows.values())).index
        for position, loop in enumerate(self.loops[:-1]):
            moved = [d for d, e in enumerate(outer) if e.depends_on(loop.var)]
            step = outer[moved[0]].coefficient(loop.var) if len(moved) == 1 else None
            if not step or step < 0 or moved[0] in steps or last.depends_on(loop.var):
                return []
            steps[moved[0]] = position, step

        def is_behind(row: tuple[int, ...], other: tuple[int, ...]) -> bool:
            """Whether an earlier iteration reads with ``other`` what a later one does with this."""
            distance = [0] * len(steps)
            for d, (mine, theirs) in enumerate(zip(row, other, strict=True)):
                position, step = steps.get(d, (None, 1))
                if (theirs - mine) % step or (position is None and theirs != mine):
                    return False
                if position is not None:
                    distance[position] = (theirs - mine) // step
            return distance > [0] * len(steps)

        return [load for row, load in rows.items() if not any(is_behind(row, o) for o in rows)]

    def level(self, node: AffineAccess, caches: list[Any]) -> int | None:
        """The cache that has room for what the whole sweep touches by an access."""
        strides = ((loop, stride_along(node.buffer, node.index, loop.var)) for loop in self.loops)
        elements = prod(loop.trips for loop, stride in strides if stride != 0)
        nbytes = elements * node.buffer.bytes_per_element
        levels = [i for i, cache in enumerate(caches[:2]) if nbytes <= cache.size // CACHE_PART]
        return levels[0] if levels else None


def _next_row(sweep: _Sweep, buffer: Buffer, caches: list[Any]) -> bool:
    """Let a sweep fetch rows of a tile before it comes to them; whether it does."""
    node = sweep.walking(buffer)
    if not isinstance(node, Load) or len(sweep.loops) < 2:
        return False
    row = sweep.inner.trips * buffer.bytes_per_element
    around = sweep.loops[-2].var
    steps = [expr.coefficient(around) for expr in node.index]
    if None in steps or not any(steps):
        return False
    if row > caches[1].size // CACHE_PART:
        return False
    ahead = Expr.of(around) + max(1, AHEAD // row)
    for load in sweep.leading(buffer) or [node]:
        moved = tuple(e.substitute({around: ahead}) for e in load.index)
        # Into the second: the first one can wait for few lines at a time, and loads need them.
        sweep.inner.prefetches.append(Prefetch(buffer, moved, False, 1))
    return True


def _next_tile(sweep: _Sweep, buffer: Buffer, tile: Var, caches: list[Any]) -> None:
    node = sweep.walking(buffer)
    level = None if node is None else sweep.level(node, caches)
    if not isinstance(node, Load) or level is None:
        return
    steps = [expr.coefficient(tile) for expr in node.index]
    if None in steps or not any(steps):
        return
    moved = tuple(e.substitute({tile: Expr.of(tile) + 1}) for e in node.index)
    sweep.inner.prefetches.append(Prefetch(buffer, moved, False, level))


def _stored_later(sweep: _Sweep, buffer: Buffer, earlier: list[_Sweep], caches: list[Any]) -> None:
    node = sweep.walking(buffer)
    level = None if node is None else sweep.level(node, caches)
    if not isinstance(node, Store) or level is None:
        return
    shape = [(loop.var.extent, loop.bounded) for loop in sweep.loops]
    alike = [s for s in earlier if [(n.var.extent, n.bounded) for n in s.loops] == shape]
    if not alike or any(bounded for _, bounded in shape):
        return
    longest = max(alike, key=lambda s: cost.operations(s.inner.body))
    pairs = zip(sweep.loops, longest.loops, strict=True)
    places = {mine.var: Expr.of(theirs.var) for mine, theirs in pairs}
    moved = tuple(e.substitute(places) for e in node.index)
    longest.inner.prefetches.append(Prefetch(buffer, moved, True, level))
