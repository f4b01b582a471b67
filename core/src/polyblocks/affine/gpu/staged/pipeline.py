"""The steps of a product by a matrix unit as nodes, where copies go past the registers.

While a stage of the operands is used, others are on their way to shared memory. Operands of a call
come from there to registers during the call before it, so that the products of a tile's last call
go on behind the barrier: its stage may be filled again beside them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from polyblocks.affine.analysis.contractions import Operand
from polyblocks.affine.buffers.copies import (
    BLOCK,
    REGISTERS,
    SHARED,
    Barrier,
    BoxCopy,
    Commit,
    Wait,
)
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.gpu.plans.units import UnitPlan
from polyblocks.affine.gpu.staged.copy_schedule import CopySchedule
from polyblocks.affine.gpu.staged.steps import number_of, values_at
from polyblocks.affine.model import Alloca, Buffer, For, Load, Node, Op, Store, Value, clone

#: Number of a tile along the reduction.
Number = Expr


@dataclass(eq=False)
class Staged:
    """An operand, and the buffers that it passes.

    Attributes:
        operand: of rows, or of columns.
        tiles: its stages in shared memory.
        fragments: a tile of an element's steps, in the registers of the unit.
        loaded: the same as they come from memory; None if they go past the threads' registers.
    """

    operand: Operand
    tiles: Buffer
    fragments: Buffer
    loaded: Buffer | None


@dataclass
class CopyPipeline:
    """Builds the nodes that compute an element's sum.

    Args:
        plan: copies at least one operand asynchronously.
        element: the MLIR type of an operand's element as the unit takes it.
    """

    plan: UnitPlan
    element: Any
    operands: list[Staged] = field(init=False)

    def __post_init__(self) -> None:
        self.operands = [self._staged(operand) for operand in self.plan.product.operands]
        sizes = self.plan.sizes
        self.schedule = CopySchedule.of(sizes.counts[2], sizes.depth, self.plan.stages)

    def _staged(self, operand: Operand) -> Staged:
        plan, nbytes = self.plan, self.plan.element_bytes
        tiles = Buffer(
            *(plan.shape(operand), self.element, "local"),
            bytes_per_element=nbytes,
            space=SHARED,
            layout=plan.layout(operand),
        )
        loaded = None
        if not plan.is_asynchronous(operand):
            loaded = self._of_steps(operand.load.buffer.element, operand.load)
        return Staged(operand, tiles, self._of_steps(self.element), loaded)

    def _of_steps(self, element: Any, load: Load | None = None) -> Buffer:
        nbytes = self.plan.element_bytes if load is None else load.buffer.bytes_per_element
        shape = (self.plan.sizes.depth,)
        return Buffer(shape, element, "local", bytes_per_element=nbytes, space=REGISTERS)

    def nodes(self) -> list[Node]:
        """All steps, behind the nest's code before the reduction."""
        out: list[Node] = []
        for each in self.operands:
            buffers = (each.tiles, each.loaded, each.fragments)
            out += [Alloca(buffer) for buffer in buffers if buffer is not None]
        reduction = self.plan.sizes.parts.reduction
        (start,), (total,) = reduction.loops[0].inits, reduction.loops[0].results
        value = self._first_tile(start, out)
        value = self._loop(self.schedule.loop, value, out)
        for number in self.schedule.written_out:
            quiet = number >= self.schedule.quiet_from
            value = self._tile(Expr(number), value, out, quiet, number == self.schedule.last)
        value = self._loop(self.schedule.quiet_loop, value, out, quiet=True)
        self._multiply(Expr(self.schedule.last), self.plan.calls - 1, value, out, total)
        return out

    def _first_tile(self, total: Value, out: list[Node]) -> Value:
        """Start the copies of all stages, and use the first tile but for its last call."""
        last = self.schedule.last
        for number in range(self.plan.stages):
            if number <= last:
                out += self._starts(Expr(number))
            out.append(Commit())
        out += [*self._loads(Expr(0)), *self._stores(Expr(0))]
        out += self._arrived(self.schedule.in_flight + 1)
        out += self._reads(Expr(0), 0)
        if last:
            out += self._loads(Expr(1))
        for call in range(1, self.plan.calls):
            total = self._multiply(Expr(0), call - 1, total, out)
            out += self._reads(Expr(0), call)
        if last:
            out += self._stores(Expr(1))
            out += self._arrived(self.schedule.in_flight)
        return total

    def _loop(self, tiles: range, total: Value, out: list[Node], quiet: bool = False) -> Value:
        """Tiles that a loop is for, or one that is written out."""
        if len(tiles) < 2:
            for number in tiles:
                total = self._tile(Expr(number), total, out, quiet)
            return total
        var = Var(len(tiles), "t")
        carried, after = Value(total.type), Value(total.type)
        body: list[Node] = []
        yielded = self._tile(Expr.of(var) + tiles.start, carried, body, quiet)
        out.append(For(var, body, [total], [carried], [after], [yielded]))
        return after

    def _tile(
        self, number: Number, total: Value, out: list[Node], quiet: bool, is_last: bool = False
    ) -> Value:
        """The last call on the tile before one, and all others on this one.

        A quiet one starts no copy, and may be the last.
        """
        calls = self.plan.calls
        if not is_last:
            out += self._loads(number + 1)
        if not quiet:
            out += self._starts(number + (self.plan.stages - 1))
        for call in range(calls):
            tile, before = (number, call - 1) if call else (number - 1, calls - 1)
            total = self._multiply(tile, before, total, out)
            out += self._reads(number, call)
        if not is_last:
            out += self._stores(number + 1)
            out.append(Commit())
            out += self._arrived(self.schedule.in_flight)
        return total

    def _arrived(self, pending: int) -> list[Node]:
        return [Wait(pending), Barrier(BLOCK)]

    # Copies

    def _starts(self, number: Number) -> list[Node]:
        return [
            self._copy("asynchronous", number, each.operand, each.tiles)
            for each in self.operands
            if each.loaded is None
        ]

    def _loads(self, number: Number) -> list[Node]:
        return [
            self._copy("registers", number, each.operand, each.loaded)
            for each in self.operands
            if each.loaded is not None
        ]

    def _copy(self, kind: str, number: Number, operand: Operand, to: Buffer) -> For:
        """Of a tile's steps, from memory: those that there are."""
        load, order = operand.load, self.plan.product.steps
        step, loop = self._steps(number * self.plan.sizes.depth, self.plan.sizes.depth)
        at = values_at(Expr.of(step), order)
        source = Load(
            *(Value(load.result.type), load.buffer),
            *(tuple(e.substitute(at) for e in load.index), load.location),
            where=tuple(e.substitute(at) for e in load.where),
            padding=load.padding,
        )
        store = Store(source.result, to, self._place(to, operand, number, step), load.location)
        return BoxCopy(kind, (loop,), source, (), store).loop()

    def _stores(self, number: Number) -> list[Node]:
        """Copies of a loaded tile to shared memory, converted to the type of the unit."""
        out: list[Node] = []
        for each in self.operands:
            if each.loaded is None:
                continue
            operand = each.operand
            step, loop = self._steps(number * self.plan.sizes.depth, self.plan.sizes.depth)
            place = self._place(each.loaded, operand, number, step)
            source = Load(
                Value(operand.load.result.type), each.loaded, place, operand.load.location
            )
            value = source.result
            conversions = []
            for op in operand.on_the_way:
                operands, value = [value], Value(op.results[0].type)
                conversions.append(Op(op.name, operands, op.attributes, [value], op.location))
            to = self._place(each.tiles, operand, number, step)
            store = Store(value, each.tiles, to, operand.load.location)
            out.append(BoxCopy("registers", (loop,), source, tuple(conversions), store).loop())
        return out

    def _reads(self, number: Number, call: int) -> list[Node]:
        """The operands of a call."""
        out: list[Node] = []
        for each in self.operands:
            step, loop = self._call(number, call)
            value = Value(self.element)
            location = each.operand.load.location
            place = self._place(each.tiles, each.operand, number, step)
            to = self._place(each.fragments, each.operand, number, step)
            source = Load(value, each.tiles, place, location)
            store = Store(value, each.fragments, to, location)
            out.append(BoxCopy("fragments", (loop,), source, (), store).loop())
        return out

    def _place(
        self, buffer: Buffer, operand: Operand, number: Number, step: Var
    ) -> tuple[Expr, ...]:
        """Where a step of an element's row (or column) is in a buffer."""
        plan, side = self.plan, operand.side
        at = Expr.of(step) % plan.sizes.depth
        if buffer.space == REGISTERS:
            return (at,)
        outers = (plan.sizes.parts.rows, plan.sizes.parts.columns)[side]
        outer = number_of(outers) % plan.sizes.tile[side]
        stage = number % plan.stages
        return (stage, at, outer) if plan.is_transposed(operand) else (stage, outer, at)

    # Products

    def _multiply(
        self,
        number: Number,
        call: int,
        total: Value,
        out: list[Node],
        result: Value | None = None,
    ) -> Value:
        """The products of a call of the unit, added to the sum."""
        plan = self.plan
        inner = plan.sizes.parts.reduction.loops[-1]
        step, loop = self._call(number, call)
        carried = Value(total.type)
        values = {inner.arguments[0]: carried}
        body: list[Node] = []
        for each in self.operands:
            operand, at = each.operand, (Expr.of(step) % plan.sizes.depth,)
            load = Load(Value(self.element), each.fragments, at, operand.load.location)
            body.append(load)
            values[operand.value] = load.result
        known = {node for each in self.operands for node in each.operand.nodes}
        rest = [n for n in inner.body if n not in known]
        body += clone(rest, values, {})
        loop.body = body
        loop.inits, loop.arguments = [total], [carried]
        loop.results = [result or Value(total.type)]
        loop.yields = [values[inner.yields[0]]]
        loop.unit = plan.unit.name
        out.append(loop)
        return loop.results[0]

    def _call(self, number: Number, call: int) -> tuple[Var, For]:
        """The steps of a call."""
        size = self.plan.unit.shape[2]
        return self._steps(number * self.plan.sizes.depth + call * size, size)

    def _steps(self, begin: Expr, count: int) -> tuple[Var, For]:
        """Steps from one on, as far as there are any, and the loop over these."""
        step = Var(self.plan.sizes.counts[2], "k")
        return step, For(step, [], lower=(begin,), upper=(begin + count,))
