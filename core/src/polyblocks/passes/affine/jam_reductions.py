"""jam-reductions: one loop reduces several rows, far apart from each other, at the same time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine import cost
from polyblocks.affine.access import stride_along
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    Check,
    For,
    Load,
    LoadAt,
    Node,
    Sequence,
    Store,
    StoreAt,
    Value,
    clone,
    walk,
)
from polyblocks.affine.parallel import is_parallel
from polyblocks.affine.reductions import ReductionNest
from polyblocks.affine.simplify import eliminate_common
from polyblocks.affine.subnests import change_subnests, separate_loops
from polyblocks.passes.affine.base import NestPass


@dataclass(frozen=True)
class JamReductionsPass(NestPass):
    """Unroll a parallel loop around a reduction that is bound by memory, and jam the copies.

    The hardware fetches ahead along each stream of addresses that it sees, up to the end of a
    page; one core with one stream waits for memory more than half of the time. The copies are as
    far apart as the loop allows, so that each is one long stream.

    Before::

        affine.for %i = 0 to 4096 {
          %r = affine.for %k .. iter_args(%s = %z) { ... affine.load %a[%i, %k] ... }
          affine.store %r, %b[%i] }

    After::

        affine.for %i = 0 to 1024 {
          %r:4 = affine.for %k .. iter_args(%s0 = %z, %s1 = %z, %s2 = %z, %s3 = %z) {
            ... affine.load %a[%i, %k] ... affine.load %a[%i + 1024, %k] ...
            ... affine.load %a[%i + 2048, %k] ... affine.load %a[%i + 3072, %k] ... }
          affine.store %r#0, %b[%i] ... affine.store %r#3, %b[%i + 3072] }
    """

    name: ClassVar[str] = "jam-reductions"
    #: Streams of one loop. On Zen 4, sums of 64 MiB by two cores: 41 GB/s with 1, 48 with 2,
    #: 60 with 4, 55 with 8.
    streams: int = 4
    #: Operations per element and stream, beyond which the arithmetic hides the memory.
    max_operations: int = 8
    #: Values that a jammed loop carries; each will want several vector registers.
    max_carried: int = 8
    #: Elements that the reduction must have; a short one has no stream worth the name.
    min_trips: int = 256

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Jam every nest and sub-nest that reads more than the private caches hold."""
        level = context.target.parallel_level("team") or context.target.parallel[0]
        private = [m.size for m in context.target.memory if m.size and m.shared_by == 1]
        for nest in sequence.nests():

            def change(nodes: list[Node], around: list[For]) -> list[Node] | None:
                shape = ReductionNest.of_nodes(nodes)
                if shape is None or not self._streams(shape, max(private, default=0)):
                    return None
                loop = self._loop(shape, 1 if around else level.size)
                return None if loop is None else _jam(shape, loop, self.streams)

            if change_subnests(nest, change):
                eliminate_common(nest.body)
                separate_loops(sequence, nest)
                context.decide(self.name, nest.name, "jammed", streams=self.streams)

    def _streams(self, shape: ReductionNest, cached: int) -> bool:
        """Whether each iteration walks memory in order and does little with what it reads."""
        if shape.trips < self.min_trips or len(shape.inner) > 4 * self.max_operations:
            return False
        if len(shape.reductions[0].inits) * self.streams > self.max_carried:
            return False
        if cost.operations(shape.inner) > self.max_operations:
            return False
        nodes = [*shape.before, *shape.inner, *shape.after]
        if any(isinstance(n, (For, LoadAt, StoreAt, Check)) for n in nodes):
            return False
        if any(isinstance(n, Store) for n in shape.inner):
            return False
        innermost = shape.reductions[-1].var
        loads = [n for n in shape.inner if isinstance(n, Load)]
        moving = [(n, stride_along(n.buffer, n.index, innermost)) for n in loads]
        if any(stride not in (0, 1) for _, stride in moving):
            return False
        return any(stride == 1 and n.buffer.base.nbytes > cached for n, stride in moving)

    def _loop(self, shape: ReductionNest, threads: int) -> For | None:
        """The outermost parallel loop that can be jammed and leaves work for all threads."""
        if shape.iterations // self.streams < threads:
            return None
        variables = {
            v for r in shape.reductions for e in (*r.lower, *r.upper) for v in e.variables()
        }
        loads = [n for n in walk(shape.inner) if isinstance(n, Load)]
        for position, loop in enumerate(shape.parallel):
            var = loop.var
            if loop.bounded or loop.level or var.extent < self.streams or var in variables:
                continue
            if any(
                var in e.variables() for p in shape.parallel[position + 1 :] for e in _bounds(p)
            ):
                continue
            if not any(stride_along(n.buffer, n.index, var) for n in loads):
                continue
            if is_parallel(loop, [shape.parallel[0]]):
                return loop
        return None


def _bounds(loop: For) -> tuple[Expr, ...]:
    return (*loop.lower, *loop.upper)


def _jam(shape: ReductionNest, loop: For, streams: int) -> list[Node]:
    """The nest with ``streams`` iterations of ``loop`` in one, and the iterations left over."""
    count, rest = divmod(loop.var.extent, streams)
    step = Var(count)
    copies = [Expr.of(step) + k * count for k in range(streams)]
    nests = _around(shape, loop, step, _copies(shape, loop.var, copies))
    if rest:
        left = Var(rest)
        at = Expr.of(left) + streams * count
        nests += _around(shape, loop, left, _copies(shape, loop.var, [at]))
    return nests


def _around(shape: ReductionNest, loop: For, var: Var, body: list[Node]) -> list[Node]:
    """The parallel loops around ``body``, with ``var`` in the place of the jammed one's."""
    for outer in reversed(shape.parallel):
        if outer is loop:
            body = [For(var, body)]
        else:
            body = [For(outer.var, body, level=outer.level, lower=outer.lower, upper=outer.upper)]
    # Each of the nests gets loops of its own.
    return clone(body, {}, {})


def _copies(shape: ReductionNest, var: Var, places: list[Expr]) -> list[Node]:
    """The reduction for each value of ``var`` in ``places``, in one chain of loops."""
    out: list[Node] = []
    first, last = shape.reductions[0], shape.reductions[-1]
    loops = {r.var: Expr.of(Var(r.var.extent, r.var.name)) for r in shape.reductions}
    inits: list[Value] = []
    arguments: list[Value] = []
    yields: list[Value] = []
    inner: list[Node] = []
    maps: list[dict[Value, Value]] = []
    for place in places:
        values: dict[Value, Value] = {}
        out += clone(shape.before, values, {var: place})
        inits += [values.get(v, v) for v in first.inits]
        carried = [Value(a.type) for a in last.arguments]
        arguments += carried
        values.update(zip(last.arguments, carried, strict=True))
        inner += clone(shape.inner, values, {var: place, **loops})
        yields += [values.get(v, v) for v in last.yields]
        maps.append(values)
    chain, results = _chain(shape, loops, inits, arguments, inner, yields)
    out.append(chain)
    width = len(first.results)
    for k, (place, values) in enumerate(zip(places, maps, strict=True)):
        values.update(zip(first.results, results[k * width : (k + 1) * width], strict=True))
        out += clone(shape.after, values, {var: place})
    return out


def _chain(
    shape: ReductionNest,
    loops: dict[Var, Expr],
    inits: list[Value],
    arguments: list[Value],
    inner: list[Node],
    yields: list[Value],
) -> tuple[For, list[Value]]:
    """Loops like the reduction's around ``inner``, and what they result in."""
    nodes = inner
    new: list[For] = []
    for old in reversed(shape.reductions):
        (var,) = loops[old.var].variables() if old.var.extent != 1 else (Var(1),)
        lower, upper = (tuple(e.substitute(loops) for e in es) for es in (old.lower, old.upper))
        results = [Value(a.type) for a in arguments]
        loop = For(var, nodes, [], arguments, results, yields, None, lower, upper)
        new.append(loop)
        nodes, yields = [loop], results
        arguments = [Value(a.type) for a in arguments]
    new.reverse()
    for outer, loop in zip([None, *new], new, strict=False):
        loop.inits = inits if outer is None else outer.arguments
    return new[0], new[0].results
