"""eliminate-overwritten-stores: what is overwritten unread is not written."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine import operation_cost as cost
from polyblocks.affine.analysis.boxes import (
    Box,
    covered,
    difference,
    intersection,
    overlap,
    touched,
    volume,
)
from polyblocks.affine.cost import rates
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    AnyLoad,
    Buffer,
    Check,
    For,
    IndirectStore,
    Load,
    Nest,
    Node,
    Opaque,
    Sequence,
    Store,
    clone,
    reads,
    walk,
    writes,
)
from polyblocks.affine.naming.names import own_name
from polyblocks.affine.rewrites.moving import like
from polyblocks.affine.subnests import straight_loops
from polyblocks.passes.base import NestPass
from polyblocks.target import TargetDescription

Item = Nest | Opaque


@dataclass(frozen=True)
class EliminateOverwrittenStoresPass(NestPass):
    """Restrict a nest to the boxes that later nests do not overwrite.

    Candidates are nests of parallel loops with one store, such as the fill of a padded array or the
    copy into which a part is written. A nest that becomes empty is dropped; one that the cost model
    finds cheaper to store twice than to split stays.

    Before::

        affine.for %i = 0 to 6 { affine.for %j = 0 to 100 { affine.store %zero, %b[%i, %j] } }
        affine.for %i = 0 to 4 { affine.for %j = 0 to 100 { affine.store %v, %b[%i + 1, %j] } }

    After::

        affine.for %j = 0 to 100 { affine.store %zero, %b[0, %j] }
        affine.for %j = 0 to 100 { affine.store %zero, %b[5, %j] }
        affine.for %i = 0 to 4 { affine.for %j = 0 to 100 { affine.store %v, %b[%i + 1, %j] } }
    """

    name: ClassVar[str] = "eliminate-overwritten-stores"
    #: Pieces of one nest, at most.
    max_pieces: int = 8
    #: Later nests to look at, at most, so that the pass takes linear time.
    max_later: int = 64

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Split what is partly overwritten."""
        order = _Order(sequence)
        items: list[Item] = []
        for item in sequence.items:
            pieces = None
            if isinstance(item, Nest):
                pieces = self._pieces(item, order, sequence, context)
            items.extend([item] if pieces is None else pieces)
        sequence.items[:] = items

    def _pieces(
        self, nest: Nest, order: _Order, sequence: Sequence, context: Any
    ) -> list[Nest] | None:
        """The nests that replace one; None to leave it."""
        fill = _Fill.of(nest)
        if fill is None:
            return None
        boxes = _overwritten(fill, order.after(nest, fill.store.buffer, self.max_later))
        if not boxes:
            return None
        left = difference(fill.box, boxes)
        saved = volume(fill.box) - sum(map(volume, left))
        element = fill.store.buffer.bytes_per_element
        seconds = _seconds(fill, saved, context.target)
        # Another piece has its own start of the threads, unless it is too small for these.
        overhead = context.target.shared_level.overhead
        pieces = [_seconds(fill, volume(box), context.target) for box in left[1:]]
        extra = sum(overhead if each is None else min(each, overhead) for each in pieces)
        # The gain is unknown where the description lacks a rate: one piece is no loss.
        pays = len(left) <= 1 if seconds is None else extra <= 0 or seconds > extra
        accept = saved > 0 and len(left) <= self.max_pieces and pays
        context.decide(
            self.name,
            own_name(nest, sequence),
            "split" if accept else "left whole",
            pieces=len(left),
            saved_bytes=saved * element,
            saved_seconds=seconds,
            overhead_seconds=max(extra, 0.0),
        )
        if not accept:
            return None
        return [like(nest, fill.within(box)) for box in left]


def _seconds(fill: _Fill, elements: int, target: TargetDescription) -> float | None:
    """Seconds to fill ``elements`` elements; None if the description lacks a rate."""
    buffer = fill.store.buffer
    traffic = rates.traffic_seconds(target, elements * buffer.bytes_per_element, buffer.nbytes)
    compute = rates.compute_seconds(target, elements * cost.operations(fill.body))
    return None if traffic is None or compute is None else traffic + compute


@dataclass
class _Fill:
    """A nest of parallel loops around straight-line code with one store into a box.

    Attributes:
        loops: the loops from the outside in.
        body: the straight-line code.
        store: the store in it.
        box: what it covers.
    """

    loops: list[For]
    body: list[Node]
    store: Store
    box: Box

    @classmethod
    def of(cls, nest: Nest) -> _Fill | None:
        shape = straight_loops(nest.body, IndirectStore, Check, bounded=True)
        if shape is None:
            return None
        loops, body = shape
        stores = [n for n in body if isinstance(n, Store)]
        if len(stores) != 1 or stores[0].buffer.kind not in ("alloc", "output"):
            return None
        if stores[0].buffer.base in {b.base for b in reads(nest)}:
            return None
        box = covered(stores[0].index, loops)
        return None if box is None else cls(loops, body, stores[0], box)

    def within(self, box: Box) -> list[Node]:
        """The code for a part of the box."""
        at: dict[Var, Expr] = {}
        fresh: list[Var] = []
        for loop in self.loops:
            dim = next(
                (d for d, e in enumerate(self.store.index) if loop.var in set(e.variables())), None
            )
            if dim is None:
                at[loop.var] = Expr(0)
                continue
            low, high = box[dim]
            var = Var(high - low)
            at[loop.var] = Expr.of(var) + (low - self.store.index[dim].const)
            if high - low > 1:
                fresh.append(var)
        nodes = clone(self.body, {}, at)
        for var in reversed(fresh):
            nodes = [For(var, nodes)]
        return nodes


class _Order:
    """Who touches each buffer, in program order."""

    def __init__(self, sequence: Sequence) -> None:
        self._position = {item: i for i, item in enumerate(sequence.items)}
        self._touching: dict[Buffer, list[int]] = {}
        self._items = list(sequence.items)
        for i, item in enumerate(self._items):
            for base in {b.base for b in reads(item) | writes(item)}:
                self._touching.setdefault(base, []).append(i)

    def after(self, item: Item, buffer: Buffer, limit: int) -> Iterator[Item]:
        """The next items that touch the buffer, ``limit`` at most."""
        positions = self._touching[buffer.base]
        first = bisect_right(positions, self._position[item])
        for i in positions[first : first + limit]:
            yield self._items[i]


def _overwritten(fill: _Fill, later: Iterable[Item]) -> list[Box]:
    """Boxes that later nests overwrite before any read."""
    buffer = fill.store.buffer
    boxes: list[Box] = []
    for item in later:
        if not isinstance(item, Nest) or _reads_of(item, fill, boxes):
            break
        if any(b.base is buffer.base and b is not buffer for b in writes(item)):
            break
        boxes.extend(b for b in _covers(item.body, buffer, []) if overlap(b, fill.box))
    return boxes


def _reads_of(item: Nest, fill: _Fill, boxes: list[Box]) -> bool:
    """Whether an item reads what was filled and not overwritten since."""
    buffer = fill.store.buffer
    for node in walk(item.body):
        if not isinstance(node, AnyLoad) or node.buffer.base is not buffer.base:
            continue
        if not isinstance(node, Load) or node.buffer is not buffer:
            return True
        box = touched(node.index)
        if overlap(box, fill.box) and difference(intersection(box, fill.box), boxes):
            return True
    return False


def _covers(nodes: list[Node], buffer: Buffer, around: list[For]) -> Iterator[Box]:
    """Boxes of the buffer that these nodes overwrite as a whole."""
    for node in nodes:
        if isinstance(node, For):
            yield from _covers(node.body, buffer, [*around, node])
        elif isinstance(node, Store) and node.buffer is buffer:
            box = covered(node.index, around)
            if box is not None:
                yield box
