"""order-loops: the loop that walks memory in order becomes the innermost one of a reduction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.access import stride_along
from polyblocks.affine.element import element_bytes
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
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
    remove_dead,
)
from polyblocks.affine.parallel import is_parallel
from polyblocks.affine.reductions import ReductionNest
from polyblocks.passes.affine.base import NestPass


@dataclass(frozen=True)
class OrderLoopsPass(NestPass):
    """Choose the innermost loop of every reduction nest.

    Candidates are the reduction loops and the parallel loops around them; the best one has the
    most accesses with stride one or zero and is long enough for a vector. If it is a parallel
    loop, the accumulators become a small array along it.

    Before (``%b`` is walked by columns)::

        affine.for %i .. { affine.for %j = 0 to 64 {
          %r = affine.for %k .. iter_args(%s = %z) {
            ... affine.load %a[%i, %k] ... affine.load %b[%k, %j] ... }
          affine.store %r, %c[%i, %j] } }

    After::

        affine.for %i .. {
          %acc = memref.alloca() : memref<64xf32>
          affine.for %j = 0 to 64 { affine.store %z, %acc[%j] }
          affine.for %k .. { affine.for %j = 0 to 64 {
            %s = affine.load %acc[%j]
            ... affine.store %t, %acc[%j] } }
          affine.for %j = 0 to 64 { ... affine.store %r, %c[%i, %j] } }
    """

    name: ClassVar[str] = "order-loops"
    #: Elements of one accumulator array: a few of them fit the first-level cache.
    max_strip: int = 1024

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Order the loops of every nest that has a reduction."""
        level = context.target.parallel_level("team") or context.target.parallel[0]
        lanes = max(context.target.vector_bits // 32, 1)
        for nest in sequence.nests():
            shape = ReductionNest.of(nest)
            if shape is None:
                continue
            best = _choose(shape, lanes)
            if best is shape.reductions[-1].var or best is None:
                continue
            if any(best is loop.var for loop in shape.reductions):
                _move_reduction_inside(shape, best)
                nest.changed = True
            else:
                loop = next(p for p in shape.parallel if p.var is best)
                if not is_parallel(loop, nest.body):
                    continue
                first, *tail = self._strip_mine(shape, best, lanes, level.size)
                nest.body = first
                for body in tail:
                    extra = Nest(body, [], changed=True)
                    extra.name, extra.kind = f"{nest.name}_tail", nest.kind
                    extra.sources = nest.sources
                    remove_dead(extra.body)
                    sequence.items.insert(sequence.items.index(nest) + 1, extra)
                remove_dead(nest.body)
                nest.changed = True
            context.decide(self.name, nest.name, "innermost", extent=best.extent)

    def _strip_mine(
        self, shape: ReductionNest, var: Var, lanes: int, threads: int
    ) -> list[list[Node]]:
        """Bodies of the nests, one or two (a tail), that take the place of the reduction."""
        loop = next(p for p in shape.parallel if p.var is var)
        others = [p for p in shape.parallel if p is not loop]
        iterations = 1
        for other in others:
            iterations *= other.var.extent
        strip = min(var.extent, self.max_strip)
        # Enough strips to keep all threads busy, if the other loops do not.
        while iterations * -(-var.extent // strip) < 4 * threads and strip > 4 * lanes:
            strip //= 2
        count, tail = divmod(var.extent, strip)
        pieces: list[tuple[Var | None, Var, int]] = []
        if count > 1:
            pieces.append((Var(count), Var(strip), 0))
        else:
            pieces.append((None, Var(strip), 0))
        if tail:
            pieces.append((None, Var(tail), count * strip))
        strips: list[For] = []
        for outer, inner, offset in pieces:
            at = Expr.of(inner) + offset
            if outer is not None:
                at = at + Expr.of(outer) * strip
            piece = _strip(shape, var, at, inner)
            # A loop of one iteration keeps the accumulators of a lone strip inside a loop.
            strips.append(For(outer or Var(1), piece))
        nests: list[list[Node]] = [list(strips)] if others else [[strip] for strip in strips]
        for other in reversed(others):
            nests = [[For(other.var, body)] for body in nests]
        return nests


def _choose(shape: ReductionNest, lanes: int) -> Var | None:
    """The loop with the best score; the innermost reduction loop wins ties."""
    loads = [n for n in shape.inner if isinstance(n, Load)]
    stores = [n for n in shape.after if isinstance(n, Store)]
    if not loads:
        return None
    movable = shape.reorderable()
    candidates: list[Var] = [shape.reductions[-1].var]
    if movable:
        candidates += [r.var for r in reversed(shape.reductions[:-1])]
    candidates += [p.var for p in reversed(shape.parallel)]

    def score(var: Var) -> float:
        total = 0.0
        for access in loads:
            stride = stride_along(access.buffer, access.index, var)
            total += 2.0 if stride == 1 else 1.0 if stride == 0 else -3.0
        if any(p.var is var for p in shape.parallel):
            for store in stores:
                stride = stride_along(store.buffer, store.index, var)
                total += 0.25 if stride == 1 else -0.25
        if total > 0:
            total *= min(1.0, var.extent / lanes)
        return total

    return max(candidates, key=score)


def _move_reduction_inside(shape: ReductionNest, var: Var) -> None:
    """Exchange the variables of the chain so that ``var`` runs innermost."""
    order = [r.var for r in shape.reductions if r.var is not var] + [var]
    for loop, new in zip(shape.reductions, order, strict=True):
        loop.var = new


def _strip(shape: ReductionNest, var: Var, at: Expr, inner: Var) -> list[Node]:
    """The reduction for a strip of ``var``: ``at`` is the value of ``var`` at ``inner``."""
    first, last = shape.reductions[0], shape.reductions[-1]
    out: list[Node] = []
    accumulators: list[Buffer] = []
    for init in first.inits:
        size = element_bytes(init.type)
        buffer = Buffer((inner.extent,), init.type, "local", bytes_per_element=size)
        accumulators.append(buffer)
        out.append(Alloca(buffer))

    # Starting values.
    j = Var(inner.extent)
    values: dict[Value, Value] = {}
    body = clone(shape.before, values, {var: _at(at, inner, j)})
    for buffer, init in zip(accumulators, first.inits, strict=True):
        body.append(Store(values.get(init, init), buffer, (Expr.of(j),)))
    out.append(For(j, body))

    # The reduction itself; what the code before it computed is computed again where it is used.
    j = Var(inner.extent)
    values = {}
    substitution: dict[Var, Expr] = {var: _at(at, inner, j)}
    loops = [Var(r.var.extent) for r in shape.reductions]
    substitution.update({r.var: Expr.of(v) for r, v in zip(shape.reductions, loops, strict=True)})
    body = clone(shape.before, values, substitution)
    for argument, buffer in zip(last.arguments, accumulators, strict=True):
        value = Value(argument.type)
        values[argument] = value
        body.append(Load(value, buffer, (Expr.of(j),)))
    body.extend(clone(shape.inner, values, substitution))
    for value, buffer in zip(last.yields, accumulators, strict=True):
        body.append(Store(values.get(value, value), buffer, (Expr.of(j),)))
    nest: list[Node] = [For(j, body)]
    for v in reversed(loops):
        nest = [For(v, nest)] if v.extent != 1 else nest
    out.extend(nest)

    # What happens with the result.
    j = Var(inner.extent)
    values = {}
    substitution = {var: _at(at, inner, j)}
    body = clone(shape.before, values, substitution)
    for result, buffer in zip(first.results, accumulators, strict=True):
        value = Value(result.type)
        values[result] = value
        body.append(Load(value, buffer, (Expr.of(j),)))
    body.extend(clone(shape.after, values, substitution))
    out.append(For(j, body))
    return out


def _at(at: Expr, inner: Var, j: Var) -> Expr:
    return at.substitute({inner: Expr.of(j)})
