"""The steps of a product by a matrix unit as nodes, where copies go through registers.

Three things are on their way at once. The next tile's elements come from memory while this one is
multiplied; the operands of products come from shared memory a few products ahead of them; and the
products of the last call of a tile go on behind the barrier, with operands that are in registers.
As many tiles are written out as there are stages, so that every place in shared memory is a
constant away from what a thread computes once, and as many as it takes until steps have the same
places in windows again; and so is the last tile, so that all steps of those in the loop exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import lcm
from typing import Any

from polyblocks.affine.buffers.copies import BLOCK, Barrier
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.gpu.plans.read_schedule import Read, ReadSchedule
from polyblocks.affine.gpu.plans.units import UnitPlan
from polyblocks.affine.gpu.staged.unit_nodes import Number, UnitNodes
from polyblocks.affine.gpu.staged.warp_units import WarpUnits
from polyblocks.affine.model import For, Node, Value


@dataclass
class RegisterPipeline:
    """Builds the nodes that compute an element's sum.

    Args:
        plan: copies no operand asynchronously.
        element: the MLIR type of an operand's element as the unit takes it.
    """

    plan: UnitPlan
    element: Any
    unit: UnitNodes = field(init=False)
    schedule: ReadSchedule = field(init=False)

    def __post_init__(self) -> None:
        self.unit = UnitNodes(self.plan, self.element, ahead=True)
        self.schedule = self.plan.reads
        #: Units that have elements: all of a warp row by row, and along each side.
        self._used = frozenset(WarpUnits(self.plan).with_elements())
        self._along = [frozenset(WarpUnits(self.plan, s).with_elements()) for s in range(2)]

    def nodes(self) -> list[Node]:
        """All steps, behind the nest's code before the reduction."""
        depth, steps = self.plan.sizes.depth, self.plan.sizes.counts[2]
        tiles, exact = -(-steps // depth), steps % depth == 0
        reduction = self.plan.sizes.parts.reduction
        (total,) = reduction.loops[0].inits
        out = self.unit.buffers()
        out += [*self.unit.loads(Expr(0)), *self.unit.stores(Expr(0)), Barrier(BLOCK)]
        out += self._reads(self.schedule.early_reads, Expr(0))
        together = lcm(self.plan.stages, self.plan.period)
        rounds = max(0, tiles - (1 if exact else 2)) // together
        if rounds:
            total = self._loop(rounds, together, total, out)
        for number in range(rounds * together, tiles):
            total = self._tile(Expr(number), total, out, is_last=number + 1 == tiles)
        last = next(n for n in reversed(out) if isinstance(n, For) and n.unit)
        last.results = list(reduction.loops[0].results)
        return out

    def _loop(self, rounds: int, together: int, total: Value, out: list[Node]) -> Value:
        """Rounds of several tiles, behind each of which there is another one."""
        var = Var(rounds, "t")
        carried, after = Value(total.type), Value(total.type)
        body: list[Node] = []
        yielded = carried
        for plus in range(together):
            yielded = self._tile(Expr.of(var) * together + plus, yielded, body)
        out.append(For(var, body, [total], [carried], [after], [yielded]))
        return after

    def _tile(self, number: Number, total: Value, out: list[Node], is_last: bool = False) -> Value:
        """The products of a tile, and copies of the one that follows unless it is the last one."""
        unit, schedule, following = self.unit, self.schedule, number + 1
        if not is_last:
            out += unit.loads(following)
        products, begin = schedule.products, 0
        for at, (call, _, _) in enumerate(products):
            nodes: list[Node] = []
            if not is_last and at == schedule.stored:
                nodes += unit.stores(following)
            nodes += self._reads(schedule.due.get(at, ()), number)
            if not is_last and at == schedule.barrier:
                # The last products' operands are in registers: this stage may be filled again.
                nodes.append(Barrier(BLOCK))
            if not is_last:
                nodes += self._reads(schedule.early.get(at, ()), following)
            if nodes or call != products[begin][0]:
                total = self._multiply(number, range(begin, at), total, out)
                begin = at
            out += nodes
        return self._multiply(number, range(begin, len(products)), total, out)

    def _multiply(self, number: Number, products: range, total: Value, out: list[Node]) -> Value:
        """Some products of one call, by the units that any element belongs to."""
        of_call = self.plan.of_warp[0] * self.plan.of_warp[1]
        units = range(products.start % of_call, products.start % of_call + len(products))
        call = products.start // of_call
        if self._used.isdisjoint(units) or not self._has_steps(number, call):
            return total
        return self.unit.multiply(number, call, total, out, units=units)

    def _reads(self, reads: Iterable[Read], number: Number) -> Iterator[Node]:
        """Operands of a tile, those of neighbouring units together."""
        joined: list[tuple[int, int, list[int]]] = []
        for side, call, units in reads:
            if self._along[side].isdisjoint(units) or not self._has_steps(number, call):
                continue
            if joined and joined[-1][:2] == (side, call) and joined[-1][2][-1] + 1 == units[0]:
                joined[-1][2].extend(units)
            else:
                joined.append((side, call, list(units)))
        for side, call, all_ in joined:
            yield self.unit.read(number, call, side, range(all_[0], all_[-1] + 1))

    def _has_steps(self, number: Number, call: int) -> bool:
        """Whether there is a step for a call: the last tile may have fewer."""
        begin = number * self.plan.sizes.depth + call * self.plan.unit.shape[2]
        return begin.range()[0] < self.plan.sizes.counts[2]
