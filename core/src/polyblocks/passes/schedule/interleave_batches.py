"""interleave-batches: many small problems are solved one per lane of a vector."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from polyblocks.affine.access import accesses, address, all_accesses
from polyblocks.affine.analysis.coverage import is_injective
from polyblocks.affine.analysis.parallel import is_parallel
from polyblocks.affine.cleanup.unroll import unroll_loops
from polyblocks.affine.element import dtype_of
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.flat_views import FlatViews, flattenable
from polyblocks.affine.likeness import Remembered
from polyblocks.affine.model import (
    AffineAccess,
    Alloca,
    Buffer,
    For,
    Load,
    Nest,
    Node,
    Sequence,
    Store,
    Value,
    clone,
    transform_indices,
    walk,
)
from polyblocks.affine.vectors.interleaves import MAX_WHOLE_STEP
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class InterleaveBatchesPass(NestPass):
    """Let the iterations of an outer loop be lanes, where the loops in it are short and dependent.

    So it is with factorizations of small matrices: their loops have fewer iterations than a vector
    has lanes, and each needs what the one before it made. The slices of a block of iterations are
    copied to arrays in which the lane is the last index, and back from there. Arrays of an
    iteration get that index, too. Iterations that do not fill a block are a nest of their own.

    Before::

        affine.for %b = 0 to 1024 {
          %w = memref.alloca() : memref<3x3xf32>
          affine.for %k = 0 to 3 { ... %x = affine.load %a[%b, %k, 0] ... } }

    After::

        affine.for %t = 0 to 64 {
          %tile = memref.alloca() : memref<9x16xf32>
          %w = memref.alloca() : memref<3x3x16xf32>
          affine.for %l = 0 to 16 { ... affine.store %x, %tile[0, %l] ... }
          affine.for %l = 0 to 16 {
            affine.for %k = 0 to 3 { ... %x = affine.load %tile[3 * %k, %l] ... } }
            {polyblocks.lanes = 16} }
    """

    name: ClassVar[str] = "interleave-batches"
    #: Iterations of each loop inside, at most: longer ones fill vectors themselves.
    max_trips: int = 40
    #: Bytes of the arrays of a block, which are on the stack of a thread.
    max_bytes: int = 7 << 16
    #: Bytes of those of two vectors side by side: they stay in a fast cache.
    max_pair_bytes: int = 1 << 14
    #: Nodes of a loop that is unrolled: its elements of arrays can stay in registers then.
    max_nodes: int = 800

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Interleave every nest that it suits."""
        views = FlatViews(sequence)
        suits: Remembered[bool] = Remembered(sequence.nests(), anywhere=True)

        for nest in sequence.nests():
            # Most nests are no batches, and many are alike.
            if not suits.get(nest, nest.body, partial(_suits, nest, self.max_trips)):
                continue
            batch = _Batch.of(nest, self.max_trips)
            if batch is None:
                continue
            width = context.target.vector_bits // batch.bits
            extent = batch.loop.var.extent
            if extent < width or batch.bytes * width > self.max_bytes:
                continue
            lanes = width
            if batch.bytes * 2 * width <= self.max_pair_bytes and extent >= 2 * width:
                lanes = 2 * width
            whole, left = divmod(extent, lanes)
            parts = [batch.block(views, 0, whole, lanes, lanes, self.max_nodes)]
            if left == 1:
                # One lane is a scalar.
                alone = {batch.loop.var: Expr(extent - 1)}
                parts.append([For(Var(1), clone(batch.loop.body, {}, alone))])
            elif left:
                parts.append(batch.block(views, whole, 1, left, lanes, self.max_nodes))
            first, *behind = parts
            nest.replace(first)
            position = sequence.items.index(nest) + 1
            sequence.items[position:position] = [nest.edge(nodes) for nodes in behind]
            context.decide(self.name, nest.name, "lanes", lanes=lanes, iterations=extent)


def _suits(nest: Nest, max_trips: int) -> bool:
    return _Batch.of(nest, max_trips) is not None


@dataclass
class _Slice:
    """The part of a buffer that one iteration touches.

    Attributes:
        step: elements from one iteration's slice to the next one's.
        extent: elements from the slice's first to its last one, both included.
        copied_in: whether the slice holds something before.
        copied_out: whether it is stored to.
    """

    step: int
    extent: int
    copied_in: bool
    copied_out: bool


@dataclass
class _Batch:
    """A loop whose iterations can be lanes.

    Attributes:
        loop: the loop.
        slices: of the buffers that every iteration has a part of.
        local: arrays of an iteration.
        bits: of the widest elements.
    """

    loop: For
    slices: dict[Buffer, _Slice]
    local: list[Buffer]
    bits: int

    @staticmethod
    def of(nest: Nest, max_trips: int) -> _Batch | None:
        """The outer loop of a nest; None if its iterations are no lanes, or need not be."""
        if len(nest.body) != 1 or not isinstance(nest.body[0], For):
            return None
        loop = nest.body[0]
        if loop.bounded or loop.inits or loop.level or loop.lanes or loop.unit or loop.schedule:
            return None
        local = [n.buffer for n in loop.body if isinstance(n, Alloca)]
        inside = [n for n in walk(loop.body) if n is not loop]
        loops = [n for n in inside if isinstance(n, For)]
        if not local or not loops or any(f.trips > max_trips for f in loops):
            return None
        if any(f.level or f.lanes or f.unit or f.copy or f.schedule for f in loops):
            return None
        if sum(isinstance(n, Alloca) for n in inside) != len(local):
            return None
        touched = accesses(loop.body)
        if len(touched) < len(all_accesses(loop.body)) or any(n.where for n in touched):
            return None
        slices = _slices(loop, touched, {*local})
        # Truth values, such as whether an iteration failed, follow from the others.
        sizes = {dtype_of(n.buffer.element).bits for n in touched} - {1}
        if slices is None or not sizes or not sizes <= {32, 64}:
            return None
        # Loops whose iterations need each other keep what they make in arrays. This takes longest.
        if all(is_parallel(f, nest.body) for f in loops) or not is_parallel(loop, nest.body):
            return None
        return _Batch(loop, slices, local, max(sizes))

    @property
    def bytes(self) -> int:
        """Of the arrays of one lane."""
        sliced = sum(s.extent * b.bytes_per_element for b, s in self.slices.items())
        return sliced + sum(b.nbytes for b in self.local)

    def block(
        self, views: FlatViews, first: int, blocks: int, count: int, lanes: int, max_nodes: int
    ) -> list[Node]:
        """Code for some blocks of iterations.

        Args:
            views: of the sequence.
            first: number of the first block.
            blocks: how many blocks there are.
            count: iterations of each.
            lanes: lanes of the arrays; those behind ``count`` are not used.
            max_nodes: of a loop that is unrolled.
        """
        block, lane = Var(blocks), Var(count)
        number = (Expr.of(block) + first) * lanes
        buffers: dict[Buffer, Buffer] = {}
        for old in self.local:
            buffers[old] = _interleaved(old, old.shape, lanes)
        tiles = {b: _interleaved(b, (s.extent,), lanes) for b, s in self.slices.items()}
        # Where iterations are in what is accessed directly.
        here = {self.loop.var: number + Expr.of(lane)}
        body = clone([n for n in self.loop.body if not isinstance(n, Alloca)], {}, {})
        for node in walk(body):
            if not isinstance(node, AffineAccess):
                continue
            if node.buffer in buffers:
                node.index = (*node.index, Expr.of(lane))
                node.buffer = buffers[node.buffer]
            elif node.buffer in tiles:
                step = self.slices[node.buffer].step
                place = address(node.buffer, node.index) - Expr.of(self.loop.var) * step
                node.index = (place, Expr.of(lane))
                node.buffer = tiles[node.buffer]
        transform_indices(body, lambda e: e.substitute(here))
        inner = For(lane, unroll_loops(body, max_nodes), lanes=lanes)
        nodes: list[Node] = [Alloca(b) for b in (*buffers.values(), *tiles.values())]
        for old, one in self.slices.items():
            if one.copied_in:
                nodes += _copy(one, views.of(old), tiles[old], number, count, inward=True)
        nodes.append(inner)
        for old, one in self.slices.items():
            if one.copied_out:
                nodes += _copy(one, views.of(old), tiles[old], number, count, inward=False)
        return [For(block, nodes, tile=True)]


def _interleaved(buffer: Buffer, shape: tuple[int, ...], lanes: int) -> Buffer:
    size = buffer.bytes_per_element
    return Buffer((*shape, lanes), buffer.element, "local", bytes_per_element=size)


def _slices(
    loop: For, accesses: list[AffineAccess], local: set[Buffer]
) -> dict[Buffer, _Slice] | None:
    """The slice of each buffer that an iteration touches; None if slices overlap or are not known.

    Buffers that all iterations read at the same places, and those in which the elements of
    neighbours are neighbours already, are left out: they are accessed where they are.
    """
    found: dict[Buffer, _Slice] = {}
    for buffer in dict.fromkeys(n.buffer for n in accesses if n.buffer not in local):
        mine = [n for n in accesses if n.buffer is buffer]
        stores = [n for n in mine if isinstance(n, Store)]
        places = [address(buffer, n.index) for n in mine]
        (step, *others) = {place.coefficient(loop.var) for place in places}
        if others or step is None or step < 0 or not flattenable(buffer) or buffer.kind == "other":
            return None
        ranges = [(place - Expr.of(loop.var) * step).range() for place in places]
        extent = 1 + max(high for _, high in ranges)
        if not step and not stores or step == 1 and extent > 1:
            continue
        if min(low for low, _ in ranges) < 0 or extent > step:
            return None
        # A slice that is stored whole before it is loaded need not be copied in.
        one = _Slice(step, extent, copied_in=True, copied_out=bool(stores))
        filled = [_position(loop, n) for n in stores if _fills(loop, n, one)]
        used = [_position(loop, n) for n in mine if n not in stores]
        one.copied_in = not filled or min(filled) >= min(used, default=len(loop.body))
        found[buffer] = one
    return found


def _position(loop: For, node: Node) -> int:
    """Which of the nodes of a loop's body a node is, or is in."""
    return next(i for i, child in enumerate(loop.body) if any(n is node for n in walk([child])))


def _fills(loop: For, store: Store, one: _Slice) -> bool:
    """Whether a store writes all elements of a slice."""
    loops = _loops_around(loop, store)
    if any(f.bounded for f in loops):
        return False
    place = address(store.buffer, store.index) - Expr.of(loop.var) * one.step
    count = 1
    for each in loops:
        count *= each.var.extent
    return count == one.extent and is_injective((place,), [f.var for f in loops])


def _loops_around(loop: For, node: Node) -> list[For]:
    """The loops inside of ``loop`` that a node is in."""
    for child in loop.body:
        if child is node:
            return []
        if isinstance(child, For) and any(n is node for n in walk([child])):
            return [child, *_loops_around(child, node)]
    return []


def _copy(
    one: _Slice, flat: Buffer, tile: Buffer, number: Expr, count: int, *, inward: bool
) -> list[Node]:
    """Copy the slices of a block to a tile, or back."""
    lane = Var(count)

    def element(k: Expr) -> Iterator[Node]:
        there = ((number + Expr.of(lane)) * one.step + k,)
        here = (k, Expr.of(lane))
        value = Value(flat.element)
        source, to = ((flat, there), (tile, here)) if inward else ((tile, here), (flat, there))
        yield Load(value, *source)
        yield Store(value, *to)

    # Short slices are moved together, in whole vectors.
    if one.extent <= MAX_WHOLE_STEP:
        return [For(lane, [n for k in range(one.extent) for n in element(Expr(k))])]
    place = Var(one.extent)
    return [For(place, [For(lane, list(element(Expr.of(place))))])]
