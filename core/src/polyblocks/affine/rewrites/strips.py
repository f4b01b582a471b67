"""A reduction for a strip of a parallel loop at a time, with an array of accumulators.

The strip's loop runs innermost, so that memory is walked in order. Each pass over the strip takes
several iterations of the reduction (they are *jammed*), so that the accumulators are loaded and
stored once for all of them and the memory sees as many streams. Long sums are done in blocks
whose results are added up: rounding errors grow with the root of the length of a chain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from polyblocks.affine.analysis.reductions import ROUNDING, ReductionNest, identities
from polyblocks.affine.element import element_bytes
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import Alloca, Buffer, For, Load, Node, Op, Store, Value, clone
from polyblocks.affine.ops import Ops

#: Iterations of a sum that are one block, at least; a block costs three passes over the strip.
MIN_BLOCK = 128

Substitution = dict[Var, Expr]


@dataclass
class Strip:
    """Builds the nodes of one strip.

    Attributes:
        shape: the reduction; a parallel loop of it becomes the strip.
        var: the variable of that loop.
        at: the value of ``var`` at position ``inner`` of the strip.
        inner: the position in the strip; its extent is the strip's size.
        lower: bounds of ``inner`` where not all strips begin at position 0.
        upper: bounds of ``inner`` where strips differ in size.
        jam: reduction iterations in one pass over the strip.
    """

    shape: ReductionNest
    var: Var
    at: Expr
    inner: Var
    lower: tuple[Expr, ...] = ()
    upper: tuple[Expr, ...] = ()
    jam: int = 1
    combiners: list[Op] | None = field(init=False)

    def __post_init__(self) -> None:
        self.combiners = self.shape.combiners()

    def nodes(self) -> list[Node]:
        """The accumulators, their starting values, the reduction, and what follows it."""
        shape = self.shape
        accumulators = [self._array(init) for init in shape.reductions[0].inits]
        out: list[Node] = [Alloca(buffer) for buffer in accumulators]
        out.append(self._start(accumulators))
        position, block = self._blocks()
        if block:
            partial = [self._array(init) for init in shape.reductions[0].inits]
            out += [Alloca(buffer) for buffer in partial]
            out += self._reduce(0, {}, accumulators, position, block, partial)
        else:
            out += self._reduce(0, {}, accumulators)
        out.append(self._finish(accumulators))
        return out

    def _array(self, like: Value) -> Buffer:
        size = element_bytes(like.type)
        return Buffer((self.inner.extent,), like.type, "local", bytes_per_element=size)

    def _loop(self, j: Var, body: list[Node]) -> For:
        return For(j, body, lower=self.lower, upper=self.upper)

    def _enter(self) -> tuple[Var, dict[Value, Value], Substitution, list[Node]]:
        """A new strip loop: its variable, and the code before the reduction, computed again."""
        j = Var(self.inner.extent)
        values: dict[Value, Value] = {}
        substitution = {self.var: self.at.substitute({self.inner: Expr.of(j)})}
        return j, values, substitution, clone(self.shape.before, values, substitution)

    def _start(self, accumulators: list[Buffer]) -> For:
        j, values, _, body = self._enter()
        for buffer, init in zip(accumulators, self.shape.reductions[0].inits, strict=True):
            body.append(Store(values.get(init, init), buffer, (Expr.of(j),)))
        return self._loop(j, body)

    def _finish(self, accumulators: list[Buffer]) -> For:
        j, values, substitution, body = self._enter()
        for result, buffer in zip(self.shape.reductions[0].results, accumulators, strict=True):
            value = Value(result.type)
            values[result] = value
            body.append(Load(value, buffer, (Expr.of(j),)))
        body += clone(self.shape.after, values, substitution)
        return self._loop(j, body)

    def _blocks(self) -> tuple[int, int]:
        """Which reduction loop is done in blocks (all loops inside it included), and how long.

        The length is 0 if there are none.
        """
        shape = self.shape
        if self.combiners is None or not any(op.name in ROUNDING for op in self.combiners):
            return 0, 0
        if any(loop.bounded for loop in shape.reductions) or identities(self.combiners) is None:
            return 0, 0
        inside = 1
        for position in range(len(shape.reductions) - 1, -1, -1):
            extent = shape.reductions[position].var.extent
            # A block and the chain of blocks give about the same error.
            wanted = max(MIN_BLOCK, math.isqrt(shape.trips * self.jam)) / inside
            block = -(-math.ceil(wanted) // self.jam) * self.jam
            if extent >= 2 * block or (position == 0 and extent * inside >= 2 * MIN_BLOCK):
                return position, min(block, extent)
            inside *= extent
        return 0, 0

    def _reduce(
        self,
        position: int,
        at: Substitution,
        target: list[Buffer],
        blocked: int = -1,
        block: int = 0,
        partial: list[Buffer] | None = None,
    ) -> list[Node]:
        """Reduction loops from ``position`` inwards, into ``target``."""
        if position == blocked:
            assert partial is not None
            return self._in_blocks(position, at, target, block, partial)
        loop = self.shape.reductions[position]
        if position == len(self.shape.reductions) - 1 and not loop.bounded:
            return self._jammed(position, at, target, 0, loop.var.extent)
        var = Var(loop.var.extent, loop.var.name)
        here = {**at, loop.var: Expr.of(var)}
        if position == len(self.shape.reductions) - 1:
            body: list[Node] = [self._pass([here], target)]
        else:
            body = self._reduce(position + 1, here, target, blocked, block, partial)
        lower, upper = (tuple(e.substitute(at) for e in es) for es in (loop.lower, loop.upper))
        return [For(var, body, lower=lower, upper=upper)]

    def _in_blocks(
        self, position: int, at: Substitution, target: list[Buffer], block: int, part: list[Buffer]
    ) -> list[Node]:
        extent = self.shape.reductions[position].var.extent
        count, rest = divmod(extent, block)
        number = Var(count)
        out: list[Node] = []
        if count:
            start = Expr.of(number) * block
            out.append(For(number, self._block(position, at, target, start, block, part)))
        if rest:
            out += self._block(position, at, target, Expr(count * block), rest, part)
        return out

    def _block(
        self,
        position: int,
        at: Substitution,
        target: list[Buffer],
        start: Expr,
        length: int,
        partial: list[Buffer],
    ) -> list[Node]:
        """Part of a reduction loop, summed up by itself and then added to ``target``."""
        assert self.combiners is not None
        body: list[Node] = []
        j = Var(self.inner.extent)
        zeros = identities(self.combiners)
        assert zeros is not None
        for zero, buffer in zip(zeros, partial, strict=True):
            body += [zero, Store(zero.results[0], buffer, (Expr.of(j),))]
        out: list[Node] = [self._loop(j, body)]
        if position == len(self.shape.reductions) - 1:
            out += self._jammed(position, at, partial, start, length)
        else:
            var = Var(length)
            here = {**at, self.shape.reductions[position].var: Expr.of(var) + start}
            out.append(For(var, self._reduce(position + 1, here, partial)))
        j = Var(self.inner.extent)
        body = []
        for op, old, new in zip(self.combiners, target, partial, strict=True):
            a, b = (Value(op.results[0].type) for _ in range(2))
            where = (Expr.of(j),)
            body += [Load(a, old, where), Load(b, new, where)]
            body.append(Store(Ops(body).like(op, [a, b]), old, where))
        out.append(self._loop(j, body))
        return out

    def _jammed(
        self, position: int, at: Substitution, target: list[Buffer], start: Expr | int, length: int
    ) -> list[Node]:
        """``length`` iterations of the innermost reduction loop from ``start``, jammed."""
        var = self.shape.reductions[position].var
        count, rest = divmod(length, self.jam)
        step = Var(count)
        out: list[Node] = []
        if count:
            first = Expr.of(step) * self.jam + start
            body = self._pass([{**at, var: first + k} for k in range(self.jam)], target)
            out.append(For(step, [body]) if count > 1 else body)
        if rest:
            first = Expr.of(start) + count * self.jam
            out.append(self._pass([{**at, var: first + k} for k in range(rest)], target))
        return out

    def _pass(self, places: list[Substitution], target: list[Buffer]) -> For:
        """One pass over the strip: the reduction's body at each of ``places``."""
        j, values, here, body = self._enter()
        last = self.shape.reductions[-1]
        carried: list[Value] = []
        for argument, buffer in zip(last.arguments, target, strict=True):
            value = Value(argument.type)
            carried.append(value)
            body.append(Load(value, buffer, (Expr.of(j),)))
        if self.combiners is not None and len(places) > 1:
            carried = self._combined(places, here, values, carried, body)
        else:
            for place in places:
                inside = dict(values)
                inside.update(zip(last.arguments, carried, strict=True))
                body += clone(self.shape.inner, inside, {**here, **place})
                carried = [inside.get(v, v) for v in last.yields]
        for value, buffer in zip(carried, target, strict=True):
            body.append(Store(value, buffer, (Expr.of(j),)))
        return self._loop(j, body)

    def _fused(self) -> bool:
        """Whether terms are products: then a chain of fused multiply-adds is less work."""
        assert self.combiners is not None
        terms = {v for op in self.combiners if op.name == "arith.addf" for v in op.operands}
        return any(
            isinstance(n, Op) and n.name == "arith.mulf" and n.results[0] in terms
            for n in self.shape.inner
        )

    def _combined(
        self,
        places: list[Substitution],
        here: Substitution,
        values: dict[Value, Value],
        carried: list[Value],
        body: list[Node],
    ) -> list[Value]:
        """The terms of all places, combined with each other and then with what is carried.

        That is pairwise, or where terms are products one after the other. The carried value is
        rounded once for all of them: that addition may not be reassociated, else a chain of
        multiply-adds would begin with the carried value and round it at every one of them.
        """
        assert self.combiners is not None
        fused = self._fused()
        last = self.shape.reductions[-1]
        rest = [n for n in self.shape.inner if not any(n is op for op in self.combiners)]
        terms: list[list[Value]] = [[] for _ in self.combiners]
        for place in places:
            inside = dict(values)
            body += clone(rest, inside, {**here, **place})
            for own, op, argument in zip(terms, self.combiners, last.arguments, strict=True):
                (term,) = [v for v in op.operands if v is not argument]
                own.append(inside.get(term, term))
        out: list[Value] = []
        for own, op, value in zip(terms, self.combiners, carried, strict=True):
            level = own
            while fused and len(level) > 1:
                level = [_combine(op, level[:2], body), *level[2:]]
            while len(level) > 1:
                pairs = [level[i : i + 2] for i in range(0, len(level), 2)]
                level = [_combine(op, p, body) if len(p) == 2 else p[0] for p in pairs]
            out.append(_combine(op, [value, level[0]], body, apart=True))
        return out


def _combine(op: Op, values: list[Value], body: list[Node], apart: bool = False) -> Value:
    """One more ``op``; one that is ``apart`` may not be put together with other ones."""
    result = Value(op.results[0].type)
    attributes = {k: v for k, v in op.attributes.items() if not (apart and k == "fastmath")}
    body.append(Op(op.name, values, attributes, [result], op.location))
    return result
