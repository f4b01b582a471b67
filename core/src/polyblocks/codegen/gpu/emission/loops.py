"""Loops in kernels: those of one thread, and those whose iterations threads share."""

from __future__ import annotations

from functools import partial
from typing import Any

from polyblocks.affine.analysis.dataflow import makers_of, slice_of
from polyblocks.affine.analysis.reductions import ROUNDING, identity
from polyblocks.affine.gpu.plans.groups import DistributedLoop, Place
from polyblocks.affine.model import (
    AffineAccess,
    AnyLoad,
    For,
    Node,
    Op,
    Pure,
    Store,
    Value,
    walk,
)
from polyblocks.affine.vectors.reduction_vectors import IDEMPOTENT, combine
from polyblocks.codegen.gpu.emission.cascade import block_of, cascade, combiners_of, terms_inside
from polyblocks.codegen.gpu.emission.combine import Joiner
from polyblocks.codegen.gpu.emission.nodes import NodeEmitter
from polyblocks.codegen.gpu.emission.wide_body import WideBody

#: Nodes up to which the iterations that one thread does of a distributed loop are written out.
UNROLLED = 192
#: Iterations up to which they are: as many loads in flight as pay.
ROUNDS = 8
#: Iterations up to which a loop with barriers in it is.
WRITTEN_OUT = 4


class LoopEmitter:
    """Writes the loops of a nest whose iterations groups of threads share out.

    Args:
        nodes: writes their bodies.
        scratch: shared memory for the values that each distributed reduction carries.
    """

    def __init__(self, nodes: NodeEmitter, scratch: dict[DistributedLoop, list[Any]]) -> None:
        self.nodes, self.code, self.plan = nodes, nodes.code, nodes.plan
        self.thread, self.scratch = nodes.thread, scratch
        #: Loops around that all threads of a group run together.
        self.depth = 0
        nodes.loop = self.emit

    def emit(self, node: For, uniform: bool) -> None:
        """A loop; ``uniform``: all threads of a group run it together, or share it."""
        distributed = self.plan.distributed.get(node) if uniform else None
        if distributed is not None and distributed.scan:
            self._scan(distributed)
        elif distributed is not None:
            self._shared(distributed)
        else:
            self._serial(node, uniform)

    def _serial(self, node: For, uniform: bool) -> None:
        """A loop that the thread runs from the first iteration to the last."""
        code = self.code
        low, high = code.integer(0), code.integer(node.var.extent)
        for expr in node.lower:
            if expr.range()[1] > 0:
                low = code.value("arith.maxsi", code.index, low, self.nodes.expr(expr))
        for expr in node.upper:
            high = code.value("arith.minsi", code.index, high, self.nodes.expr(expr))

        def body(variable: Any, carried: list[Any]) -> list[Any]:
            self.nodes.variables[node.var] = variable
            self.nodes.values.update(zip(node.arguments, carried, strict=True))
            self.depth += uniform
            yielded = self.nodes.run(node.body, uniform, node.yields)
            self.depth -= uniform
            return yielded

        inits = [self.nodes.use(v) for v in node.inits]
        if ops := combiners_of(node):
            inside = terms_inside(node, lambda inner: uniform and inner in self.plan.distributed)
            block = block_of(node.var.extent, inside)
            results = cascade(code, ops, node.var.extent, block, inits, body)
        elif uniform and self._picks_copies(node):
            results = inits
            for number in range(node.var.extent):
                bounds = [code.compare("sge", code.integer(number), low)] if node.lower else []
                bounds += [code.compare("slt", code.integer(number), high)] if node.upper else []
                results = code.when(
                    code.both(bounds),
                    partial(body, code.integer(number), results),
                    partial(list, results),
                    [v.type for v in results],
                )
        else:
            results = code.loop(low, high, code.integer(1), inits, body)
        self.nodes.values.update(zip(node.results, results, strict=True))

    def _picks_copies(self, node: For) -> bool:
        """Whether a short loop picks elements of what every thread has a copy of.

        Registers have no indices, and the assembler leaves loops with barriers as they are.
        """
        if node.var.extent > WRITTEN_OUT:
            return False
        waits = any(inner in self.plan.distributed for inner in walk(node.body))
        return waits and any(
            isinstance(inner, AffineAccess)
            and self.plan.places.get(inner.buffer) is Place.PRIVATE
            and node.var in {v for e in inner.index for v in e.variables()}
            for inner in walk(node.body)
        )

    def _shared(self, distributed: DistributedLoop) -> None:
        """A loop whose iterations the threads of the group take in turns."""
        first = distributed.loops[0]
        inits = [self.nodes.use(v) for v in first.inits]
        starts = [
            init if op.name in IDEMPOTENT else self._identity(op)
            for op, init in zip(distributed.combiners, inits, strict=True)
        ]
        types = [v.type for v in starts]
        parts = self.code.when(
            self.thread.valid, lambda: self._rounds(distributed, starts), lambda: starts, types
        )
        if not distributed.combiners:
            return
        joiner = Joiner(self.code, self.plan, self.thread.member, self.thread.slot)
        scratch = self.scratch.get(distributed, [])
        joined = joiner.join(distributed.combiners, parts, scratch, self.depth > 0)
        for op, init, value, result in zip(
            distributed.combiners, inits, joined, first.results, strict=True
        ):
            whole = value if op.name in IDEMPOTENT else combine(op, init, value)
            self.nodes.values[result] = whole

    def _identity(self, op: Op) -> Any:
        return self.code.constant(identity(op.name, op.results[0].type))

    def _rounds(self, distributed: DistributedLoop, carried: list[Any]) -> list[Any]:
        """The iterations of one thread: every ``group``-th one, or every ``group``-th few."""
        code, group = self.code, self.plan.group
        width = distributed.width
        pieces = distributed.trips // width
        rounds, rest = divmod(pieces, group)
        size = width * sum(1 for _ in walk(distributed.body))
        has_loops = any(isinstance(n, For) for n in distributed.body)
        few = rounds <= ROUNDS and rounds * size <= UNROLLED and not has_loops
        if few or self._keeps(distributed):
            for round_ in range(rounds):
                self.nodes.round = round_ * width
                number, _ = code.round_of(self.thread.member, round_, pieces, group)
                carried = self._iteration(distributed, number, None, carried)
        elif self._waits_for_memory(distributed) and (split := _loads_and_stores(distributed)):
            self._by_several(distributed, rounds, *split)
        elif rounds:

            def body(count: Any, inside: list[Any]) -> list[Any]:
                number = code.add(code.times(count, group), self.thread.member)
                return self._iteration(distributed, number, None, inside)

            long = any(op.name in ROUNDING for op in distributed.combiners)
            block = block_of(rounds, width) if long else rounds
            carried = cascade(code, distributed.combiners, rounds, block, carried, body)
        if rest:
            number, mine = code.round_of(self.thread.member, rounds, pieces, group)
            self.nodes.round = rounds * width
            carried = self._iteration(distributed, number, mine, carried)
        return carried

    def _waits_for_memory(self, distributed: DistributedLoop) -> bool:
        """Whether iterations load from memory of the program, and several may be written out."""
        plan = self.plan
        size = plan.in_flight * len(distributed.body)
        return (
            plan.in_flight > 1
            and size <= UNROLLED
            and any(
                isinstance(n, AnyLoad)
                and n.buffer not in plan.places
                and n.buffer not in plan.copied
                for n in distributed.body
            )
        )

    def _by_several(
        self, distributed: DistributedLoop, rounds: int, before: list[Node], after: list[Node]
    ) -> None:
        """Rounds of independent iterations: several load before the first of them stores."""
        code, together = self.code, min(self.plan.in_flight, rounds)
        made = {r for n in before for r in n.defines}
        used = list(dict.fromkeys(v for n in after for v in n.uses if v in made))

        def several(first: Any, count: int) -> None:
            waiting = []
            for number in range(count):
                at = code.add(
                    code.times(code.plus(first, number), self.plan.group), self.thread.member
                )
                self._decode(distributed, at)
                guard = code.both(self._bounds(distributed))
                zeros = [self.nodes.zero(v.type) for v in used]
                found = code.when(
                    guard,
                    lambda: self.nodes.run(before, False, used),
                    partial(list, zeros),
                    [v.type for v in used],
                )
                variables = {v: self.nodes.variables[v] for v in distributed.order}
                waiting.append((variables, self.nodes.walk, guard, found))
            for variables, walked, guard, found in waiting:
                self.nodes.variables.update(variables)
                self.nodes.values.update(zip(used, found, strict=True))
                self.nodes.walk = walked
                code.when(guard, lambda: self.nodes.run(after, False, []))
            self.nodes.walk = None

        def body(count: Any, carried: list[Any]) -> list[Any]:
            several(code.times(count, together), together)
            return carried

        whole = rounds // together
        code.loop(code.integer(0), code.integer(whole), code.integer(1), [], body)
        if rounds % together:
            several(code.integer(whole * together), rounds % together)

    def _decode(self, distributed: DistributedLoop, number: Any) -> None:
        """Let the variables be those of iteration ``number``."""
        self.nodes.decode(number, distributed.order, distributed.counted)
        if distributed.lead:
            last = distributed.order[-1]
            before = self.code.integer(-distributed.lead)
            self.nodes.variables[last] = self.code.add(self.nodes.variables[last], before)
        self.nodes.walk = None if distributed.pitch else (distributed.order, number)

    def _scan(self, distributed: DistributedLoop) -> None:
        """A scan whose ``group`` threads process as many iterations at a time."""
        code, (loop,), ops = self.code, distributed.loops, distributed.combiners
        choice = distributed.choice
        terms = choice.terms if choice is not None else _terms(loop, ops)
        before, after = _parts(loop, ops if choice is None else choice.nodes, terms)
        made = {r for n in before for r in n.defines}
        used = dict.fromkeys(v for n in after for v in n.uses if v in made)
        outputs = [*terms, *used]
        starts = [] if choice is not None else [self._identity(op) for op in ops]
        rounds, rest = divmod(distributed.trips, self.plan.group)
        again = self.depth > 0 or distributed.trips > self.plan.group
        joiner = Joiner(code, self.plan, self.thread.member, self.thread.slot)

        def iterations(number: Any, condition: Any, carried: list[Any]) -> list[Any]:
            conditions = [c for c in (condition, self.thread.valid) if c is not None]
            if choice is not None and condition is not None:
                # An element that is chosen of twice changes nothing.
                last = code.integer(loop.var.extent - 1)
                number = code.value("arith.minui", code.index, number, last)
            self.nodes.decode(number, distributed.order)
            guard = code.both([*conditions, *self._bounds(distributed)])
            zeros = [self.nodes.zero(v.type) for v in used]
            found = code.when(
                guard if choice is None else None,
                lambda: self.nodes.run(before, False, outputs),
                lambda: [*starts, *zeros],
                [v.type for v in outputs],
            )
            self.nodes.values.update(zip(outputs, found, strict=True))
            values, totals = joiner.scan(
                combined, found[: len(ops)], self.scratch.get(distributed, []), again
            )
            # Of a choice, these stand for other values for a while.
            self.nodes.values.update(zip(loop.yields, combined(carried, values), strict=True))
            self.nodes.values.update(zip(outputs, found, strict=True))
            code.when(guard, lambda: self.nodes.run(after, False, []))
            return combined(carried, totals)

        def combined(first: list[Any], second: list[Any]) -> list[Any]:
            if choice is None:
                return [combine(op, x, y) for op, x, y in zip(ops, first, second, strict=True)]
            parts = zip((*choice.arguments, *choice.terms), (*first, *second), strict=True)
            self.nodes.values.update(parts)
            return self.nodes.run(list(choice.nodes), False, choice.results)

        carried = [self.nodes.use(v) for v in loop.inits]
        if rounds:

            def body(count: Any, inside: list[Any]) -> list[Any]:
                number = code.add(code.times(count, self.plan.group), self.thread.member)
                return iterations(number, None, inside)

            carried = code.loop(
                code.integer(0), code.integer(rounds), code.integer(1), carried, body
            )
        if rest:
            number, mine = code.round_of(
                self.thread.member, rounds, loop.var.extent, self.plan.group
            )
            carried = iterations(number, mine, carried)
        self.nodes.values.update(zip(loop.results, carried, strict=True))

    def _keeps(self, distributed: DistributedLoop) -> bool:
        """Whether the loop's iterations have elements in registers."""
        places = self.plan.places
        return any(
            isinstance(n, AffineAccess) and places.get(n.buffer) is Place.DISTRIBUTED_REGISTERS
            for n in distributed.body
        )

    def _iteration(
        self, distributed: DistributedLoop, number: Any, condition: Any, carried: list[Any]
    ) -> list[Any]:
        """Iteration ``number``; of several at once, the ``number``-th few."""
        innermost, width = distributed.loops[-1], distributed.width
        number = self.code.times(number, width)

        def inside() -> list[Any]:
            self._decode(distributed, number)
            return self.code.when(
                self.code.both(self._bounds(distributed)), run, lambda: carried, types
            )

        def run() -> list[Any]:
            if width > 1:
                body = WideBody(self.nodes, distributed.order[-1], width)
                given = innermost.body, innermost.arguments, carried, innermost.yields
                yielded = body.reduce(*given)
            else:
                self.nodes.values.update(zip(innermost.arguments, carried, strict=True))
                yielded = self.nodes.run(innermost.body, False, innermost.yields)
            self.nodes.walk = None
            return yielded

        types = [v.type for v in carried]
        return self.code.when(condition, inside, lambda: carried, types)

    def _bounds(self, distributed: DistributedLoop) -> list[Any]:
        """Conditions that the bounds of the loops set."""
        code = self.code
        found = []
        if distributed.pitch:
            last = distributed.order[-1]
            end = code.integer(last.extent)
            # Those before the first one are large numbers without a sign.
            found.append(code.compare("ult", self.nodes.variables[last], end))
        for loop in distributed.loops:
            variable = self.nodes.variables[loop.var]
            for expr in loop.upper:
                if expr.range()[0] < loop.var.extent:
                    found.append(code.compare("slt", variable, self.nodes.expr(expr)))
            for expr in loop.lower:
                if expr.range()[1] > 0:
                    found.append(code.compare("sge", variable, self.nodes.expr(expr)))
        return found


def _loads_and_stores(distributed: DistributedLoop) -> tuple[list[Node], list[Node]] | None:
    """The nodes of independent iterations up to their stores, and these; None of any others.

    Wide accesses have enough on their way.
    """
    body = distributed.body
    first = next((i for i, n in enumerate(body) if n.writes), 0)
    before, after = body[:first], body[first:]
    if distributed.combiners or distributed.width > 1 or not before:
        return None
    if not all(isinstance(n, (AnyLoad, Pure)) for n in before):
        return None
    return (before, after) if all(isinstance(n, (Store, Pure)) for n in after) else None


def _terms(loop: For, ops: list[Op]) -> list[Value]:
    """The values that each iteration adds to the carried ones."""
    return [
        next(v for v in op.operands if v is not argument)
        for op, argument in zip(ops, loop.arguments, strict=True)
    ]


def _parts(loop: For, ops: list[Op], terms: list[Value]) -> tuple[list[Node], list[Node]]:
    """The nodes of a scan's body that its terms need, and those that come after the scan."""
    needed = slice_of(terms, makers_of(loop.body))
    before = [n for n in loop.body if n in needed]
    return before, [n for n in loop.body if n not in needed and n not in ops]
