"""Copies of destinations, one for each thread, and the nests that combine them."""

from __future__ import annotations

from polyblocks.affine.element import element_bytes
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.mlir.regions import stands_before
from polyblocks.affine.mlir.source import merged_sources
from polyblocks.affine.model import (
    Buffer,
    Check,
    For,
    Index,
    IndirectAccess,
    Nest,
    Node,
    Op,
    Sequence,
    Store,
    Value,
    around,
    clone,
    reads,
    writes,
)
from polyblocks.affine.ops import Ops
from polyblocks.affine.rewrites.blocks import block_bounds
from polyblocks.affine.rewrites.simplify import eliminate_common
from polyblocks.affine.scatters.scatter import Scatter

#: Scatters whose updates are made in one loop, at most: each has lines of its own in the caches.
MOST = 4


def drop_repeated_checks(nodes: list[Node]) -> bool:
    """Load and store of one place are checked once; whether something was dropped."""
    seen: set[Value] = set()
    kept: list[Node] = []
    for n in nodes:
        if isinstance(n, Check):
            if n.condition in seen:
                continue
            seen.add(n.condition)
        kept.append(n)
    dropped = len(kept) < len(nodes)
    nodes[:] = kept
    return dropped


class Copies:
    """Scatters with the same loops; every thread makes its share, to private copies.

    Shared inputs are read once, and while one waits for its store, another one goes on.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.scatters: list[tuple[Scatter, Buffer, Op]] = []
        self.updates = Nest([], [])

    def may_take(self, sequence: Sequence, scatter: Scatter, nest: Nest) -> bool:
        """Whether a scatter's updates may be made with those that are there."""
        first = self.scatters[0][0]
        extents = [[f.var.extent for f in s.loops] for s in (first, scatter)]
        if extents[0] != extents[1] or len(self.scatters) >= MOST:
            return False
        read = {b.base for b in reads(nest)} - {scatter.buffer.base}
        items = sequence.items
        between = items[items.index(self.updates) : items.index(nest)]
        if any(read & {b.base for b in writes(item)} for item in between):
            return False
        return stands_before(nest, self.updates)

    def take(self, sequence: Sequence, scatter: Scatter, nest: Nest, start: Op) -> None:
        """Put the updates with the others, and a nest that combines the copies in their place."""
        buffer, items = scatter.buffer, sequence.items
        copies = Buffer(
            (self.threads, *buffer.shape),
            buffer.element,
            "alloc",
            bytes_per_element=element_bytes(buffer.element),
        )
        at = items.index(nest)
        merge = Nest(scatter.merge(copies, self.threads), [], changed=True)
        merge.name, merge.kind, merge.sources = nest.name, "pointwise", nest.sources
        items[at] = merge
        if not self.scatters:
            self.updates.name, self.updates.kind = f"{nest.name}_parts", nest.kind
            items.insert(at, self.updates)
        self.scatters.append((scatter, copies, start))
        self.updates.sources = merged_sources([self.updates, nest])
        self.updates.replace(self._body())

    def _body(self) -> list[Node]:
        part = Var(self.threads)
        nodes: list[Node] = []
        for scatter, copies, start in self.scatters:
            dims = [Var(e) for e in scatter.buffer.shape]
            fill: list[Node] = []
            value = Ops(fill).like(start, [])
            fill.append(Store(value, copies, (Expr.of(part), *(Expr.of(d) for d in dims))))
            nodes.extend(around(dims, fill))
        return [For(part, [*nodes, self._share(part)])]

    def _share(self, part: Var) -> For:
        """The updates of one thread: a contiguous piece of the outermost loop."""
        loops = self.scatters[0][0].loops
        outermost = loops[0].var
        length = -(-outermost.extent // self.threads)
        first, upper = block_bounds(part, outermost.extent, length)
        piece = Var(length)
        inner = [Var(f.var.extent) for f in loops[1:]]
        which: Value | None = None
        nodes: list[Node] = []
        for scatter, copies, _ in self.scatters:
            own = [f.var for f in scatter.loops]
            variables = {v: Expr.of(i) for v, i in zip(own[1:], inner, strict=True)}
            variables[own[0]] = first + Expr.of(piece)
            if which is None:
                which = Value(scatter.store.index[0].type)
                nodes.append(Index(which, Expr.of(part)))
            body = clone(scatter.body, {}, variables, {scatter.buffer: copies})
            for n in body:
                if isinstance(n, IndirectAccess) and n.buffer is copies:
                    n.index = [which, *n.index]
            nodes.extend(body)
        eliminate_common(nodes)
        drop_repeated_checks(nodes)
        return For(piece, around(inner, nodes), upper=upper)
