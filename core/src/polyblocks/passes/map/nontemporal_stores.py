"""Stores that pass the caches: large outputs that nothing reads again."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from polyblocks.affine.access import address, stride_along
from polyblocks.affine.cost.rates import compute_seconds, main_bandwidth, passes_caches
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    AffineAccess,
    AnyStore,
    Buffer,
    For,
    IndirectAccess,
    Nest,
    Opaque,
    Sequence,
    Store,
    reads,
    reads_from,
    walk,
    writes,
)
from polyblocks.affine.operation_cost import operations
from polyblocks.affine.vectors.interleaves import Interleave, complete_interleaves, interleaves

#: Narrower pieces of a line are better gathered by the cache.
MIN_BYTES = 32
#: Bytes of a run of memory from which on lines are ready in time that a loop walks along. Halves of
#: rows of 256 bytes that change places take 0.44 ms through the caches of a Zen 4, and 0.33 past
#: them, 16 MiB into 16; rows of 8 KiB 0.26 and 0.33.
LONG_RUN = 512
#: Part of the time of what a loop computes below which reading the lines that it stores to costs
#: nothing beside it. Code for both alignments takes LLVM twice as long.
HIDDEN = 1 / 16


def mark_nontemporal_stores(
    loop: For,
    across: Var | None,
    width: int,
    sequence: Sequence,
    target: Any,
    around: Collection[For] = (),
) -> None:
    """Let stores of whole vectors of a loop pass the caches where that saves reading lines.

    A store brings the line into the cache that it writes to. For an output that the last cache does
    not keep, and that is not read or scattered to any more, that is a third more traffic than
    needed. Every vector must be aligned, if its buffer is; whether it is, is asked at run time.
    Where rows begin anywhere, the loop of a single store begins with a part of a vector, up to the
    first aligned element. Where computing hides the traffic, all stores go through the caches.

    Args:
        loop: the loop whose iterations are lanes.
        across: the variable of the loop around in a square tile, along which lanes may run too.
        width: lanes.
        sequence: the program.
        target: its TargetDescription.
        around: the loops around, from outside in.
    """
    caches = [level for level in target.memory if level.size]
    if not caches or loop.inits or _hides_traffic(loop, target):
        return
    turns = interleaves(loop) if across is None else complete_interleaves(loop)
    walks = across is None and _walks(loop, turns, around, caches[0].size)
    for node in loop.body:
        if not isinstance(node, Store):
            continue
        nbytes = width * node.buffer.bytes_per_element
        alignment = min(nbytes, caches[0].line)
        if nbytes < MIN_BYTES or not _passes_by(node.buffer.base, walks, sequence, target):
            continue
        if node in turns:
            group, _ = turns[node]
            if not loop.lower and _together_aligned(group, loop.var, alignment):
                node.stream = alignment
        elif _is_aligned(node, loop.var, across, alignment, loop.lower):
            node.stream = alignment
        elif across is None and _is_alone(node, loop, width):
            node.stream, node.peel = alignment, True


def _hides_traffic(loop: For, target: Any) -> bool:
    """Whether an iteration computes for much longer than the lines that it writes take to read."""
    compute, rate = compute_seconds(target, operations(loop.body)), main_bandwidth(target, 1)
    if compute is None or rate is None:
        return False
    stored = sum(n.buffer.bytes_per_element for n in loop.body if isinstance(n, Store))
    return stored / rate < HIDDEN * compute


def _is_alone(node: Store, loop: For, width: int) -> bool:
    """Whether it is the only store of a long loop, and walks along memory."""
    if not _begins_at_pointer(node.buffer) or loop.trips < 8 * width:
        return False
    stores = [n for n in loop.body if isinstance(n, AnyStore)]
    return len(stores) == 1 and address(node.buffer, node.index).coefficient(loop.var) == 1


def _walks(
    loop: For,
    turns: Mapping[AffineAccess, tuple[Interleave, int]],
    around: Collection[For],
    nearest: int,
) -> bool:
    """Whether a loop fills one long run of memory, from elements that follow each other, too.

    Elements of a tile are in a cache already, and lines that it stores to must not take its
    place: a tile is no more than the ``nearest`` cache holds. Where nothing else is read, memory
    is idle while the tile is computed, and its lines are stored at once: the next tile waits for
    them, but not for what passes the caches.
    """
    accesses = [node for node in loop.body if isinstance(node, AffineAccess)]
    stores = [node for node in accesses if isinstance(node, Store)]
    runs = {turns[node][0] if node in turns else node for node in stores}
    loads = [node for node in accesses if node not in stores]
    read = {node.buffer.base for node in loads}
    tiles = {buffer for buffer in read if buffer.kind == "local"}
    if (tiles and tiles == read) or sum(tile.nbytes for tile in tiles) > nearest:
        return False
    steps = (stride_along(n.buffer, n.index, loop.var) for n in loads)
    run = sum(node.buffer.bytes_per_element for node in stores) * loop.trips
    if len(stores) == 1:
        run *= _repeats(stores[0], loop, around)
    return (
        run >= LONG_RUN and len(runs) == 1 and all(step is None or abs(step) <= 1 for step in steps)
    )


def _repeats(store: Store, loop: For, around: Collection[For]) -> int:
    """Iterations of loops around that each go on where a run of memory ended before them."""
    if loop.bounded:
        return 1
    place, repeats = address(store.buffer, store.index), 1
    for outer in reversed([*around]):
        alone = len(outer.body) == 1 and not outer.bounded
        if not alone or place.coefficient(outer.var) != loop.trips * repeats:
            break
        repeats *= outer.trips
    return repeats


def _passes_by(buffer: Buffer, walks: bool, sequence: Sequence, target: Any) -> bool:
    """Whether a buffer is only written, and the last cache loses it to what is touched with it."""
    # Memory of the program's own is read by something, or would not be there.
    if buffer.kind == "alloc" or any(reads_from(item, buffer) for item in sequence.items):
        return False
    writers = [item for item in sequence.items if any(b.base is buffer for b in writes(item))]
    if not any(passes_caches(target, buffer, _touched_bytes(item), walks) for item in writers):
        return False
    return not any(isinstance(item, Nest) and _scatters_to(item, buffer) for item in writers)


def _scatters_to(nest: Nest, buffer: Buffer) -> bool:
    """Whether it stores single elements of a buffer, which needs the lines around them."""
    return any(
        isinstance(node, IndirectAccess) and node.writes and node.buffer.base is buffer
        for node in walk(nest.body)
    )


def _touched_bytes(item: Nest | Opaque) -> int:
    """Bytes of all buffers of the program that an item reads and writes."""
    parts: dict[Buffer, int] = {}
    for seen in {*reads(item), *writes(item)}:
        if seen.base.kind != "local":
            parts[seen.base] = min(parts.get(seen.base, 0) + seen.nbytes, seen.base.nbytes)
    return sum(parts.values())


def _is_aligned(
    node: Store, var: Var, across: Var | None, alignment: int, lower: Collection[Expr]
) -> bool:
    """Whether all vectors begin at multiples of the alignment from the start of the buffer.

    Args:
        node: the store.
        var: the variable of the loop.
        across: that of the loop around in a square tile.
        alignment: bytes.
        lower: where the loop may begin besides 0.
    """
    buffer = node.buffer
    if not _begins_at_pointer(buffer):
        return False
    place = address(buffer, node.index)
    lanes = var if place.coefficient(var) == 1 else across
    if lanes is None or place.coefficient(lanes) != 1:
        return False
    rest = place - Expr(0, {lanes: 1})
    steps = [n for e in (rest, *lower) for n in (e.const, *(factor for _, factor in e.terms))]
    return all(step * buffer.bytes_per_element % alignment == 0 for step in steps)


def _together_aligned(group: Interleave, var: Var, alignment: int) -> bool:
    """The same for what several stores write in turns, which is stored from the first one's on."""
    buffer = group.first.buffer
    if not _begins_at_pointer(buffer):
        return False
    rest = address(buffer, group.first.index) - Expr(0, {var: group.step})
    steps = [rest.const, *(factor for _, factor in rest.terms)]
    return all(step * buffer.bytes_per_element % alignment == 0 for step in steps)


def _begins_at_pointer(buffer: Buffer) -> bool:
    """Whether the first element lies where the memref's pointer points."""
    type_ = buffer.memref_type
    return type_ is None or type_.get_strides_and_offset()[1] == 0
