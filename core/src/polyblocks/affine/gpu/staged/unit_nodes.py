"""The nodes that a product by a matrix unit is made of: copies, reads and multiplications."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from polyblocks.affine.analysis.contractions import Operand
from polyblocks.affine.buffers.copies import BULK, PRODUCTS, REGISTERS, SHARED, BoxCopy, Commit
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.gpu.plans.group_units import GroupUnitPlan
from polyblocks.affine.gpu.plans.units import UnitPlan
from polyblocks.affine.gpu.staged.steps import number_of, values_at
from polyblocks.affine.gpu.staged.warp_units import WarpUnits
from polyblocks.affine.model import Alloca, Buffer, For, Load, Node, Op, Store, Value, clone

#: Number of a tile along the reduction.
Number = Expr


@dataclass(eq=False)
class Staged:
    """An operand, and the buffers that it passes.

    Attributes:
        operand: of rows, or of columns.
        tiles: its stages in shared memory.
        fragments: tiles of an element's steps, in the registers of the unit; or ``tiles``, if it
            reads shared memory.
        loaded: a tile of these as they come from memory; None if they go past the threads'
            registers.
    """

    operand: Operand
    tiles: Buffer
    fragments: Buffer
    loaded: Buffer | None


@dataclass
class UnitNodes:
    """Builds nodes of one element.

    Args:
        plan: how tiles are computed.
        element: the MLIR type of an operand's element as the unit takes it.
        ahead: whether operands of a tile come to registers of the unit while those of the tile
            before are multiplied; these have registers for each stage then.
    """

    plan: UnitPlan
    element: Any
    ahead: bool
    operands: list[Staged] = field(init=False)

    def __post_init__(self) -> None:
        self.operands = [self._staged(operand) for operand in self.plan.product.operands]
        self._units = WarpUnits(self.plan)
        self._along = [WarpUnits(self.plan, side) for side in range(2)]

    def _staged(self, operand: Operand) -> Staged:
        plan, nbytes = self.plan, self.plan.element_bytes
        depth = plan.sizes.depth
        tiles = Buffer(
            *(plan.shape(operand), self.element, "local"),
            bytes_per_element=nbytes,
            space=SHARED,
            layout=plan.layout(operand),
        )
        held = (plan.stages, depth) if self.ahead else (depth,)
        in_registers = not isinstance(plan, GroupUnitPlan)
        fragments = _registers(held, self.element, nbytes) if in_registers else tiles
        loaded, buffer = None, operand.load.buffer
        if not plan.is_asynchronous(operand):
            loaded = _registers((depth,), buffer.element, buffer.bytes_per_element)
        return Staged(operand, tiles, fragments, loaded)

    def buffers(self) -> list[Node]:
        """All buffers."""
        return [
            Alloca(buffer)
            for each in self.operands
            for buffer in dict.fromkeys((each.tiles, each.loaded, each.fragments))
            if buffer is not None
        ]

    # Copies

    def starts(self, number: Number) -> list[Node]:
        """Copies of a tile past the registers."""
        plan = self.plan
        bulk = isinstance(plan, GroupUnitPlan) and plan.bulk is not None
        return [
            self._copy(BULK if bulk else "asynchronous", number, each.operand, each.tiles)
            for each in self.operands
            if each.loaded is None
        ]

    def loads(self, number: Number) -> list[Node]:
        """Copies of a tile to registers."""
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

    def stores(self, number: Number) -> list[Node]:
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

    def read(self, number: Number, call: int, side: int, units: range | None = None) -> For:
        """The operand of a call, of the units along a side or of some of them."""
        each = self.operands[side]
        step, loop = self._call(number, call, self._along[side], units)
        value, location = Value(self.element), each.operand.load.location
        place = self._place(each.tiles, each.operand, number, step)
        to = self._place(each.fragments, each.operand, number, step)
        source = Load(value, each.tiles, place, location)
        store = Store(value, each.fragments, to, location)
        return BoxCopy("fragments", (loop,), source, (), store).loop()

    def _place(
        self, buffer: Buffer, operand: Operand, number: Number, step: Var
    ) -> tuple[Expr, ...]:
        """Where a step of an element's row (or column) is in a buffer."""
        plan, side = self.plan, operand.side
        at, stage = Expr.of(step) % plan.sizes.depth, number % plan.stages
        if buffer.space == REGISTERS:
            return (stage, at) if len(buffer.shape) > 1 else (at,)
        outers = (plan.sizes.parts.rows, plan.sizes.parts.columns)[side]
        outer = number_of(outers) % plan.sizes.tile[side]
        return plan.index(operand, stage, outer, at)

    # Products

    def products(
        self, number: Number, total: Value, out: list[Node], result: Value | None = None
    ) -> Value:
        """All products of a tile, committed as a group; the parameters are :meth:`multiply`'s."""
        calls = self.plan.calls
        for call in range(calls):
            is_last = call == calls - 1
            total = self.multiply(number, call, total, out, result if is_last else None)
        out.append(Commit(of=PRODUCTS))
        return total

    def multiply(
        self,
        number: Number,
        call: int,
        total: Value,
        out: list[Node],
        result: Value | None = None,
        units: range | None = None,
    ) -> Value:
        """The products of a call of the unit, added to the sum.

        Args:
            number: of the tile.
            call: of the unit for it.
            total: the sum before.
            out: gets the node.
            result: the sum behind it; a new value if None.
            units: of the warp, row by row; None for all.
        """
        inner = self.plan.sizes.parts.reduction.loops[-1]
        step, loop = self._call(number, call, self._units, units)
        carried = Value(total.type)
        values = {inner.arguments[0]: carried}
        body: list[Node] = []
        for each in self.operands:
            operand = each.operand
            at = self._place(each.fragments, operand, number, step)
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
        loop.unit = self.plan.unit.name
        out.append(loop)
        return loop.results[0]

    def _call(
        self, number: Number, call: int, of: WarpUnits, units: range | None
    ) -> tuple[Var, For]:
        """The steps of a call."""
        size = self.plan.unit.shape[2]
        step, loop = self._steps(number * self.plan.sizes.depth + call * size, size)
        if units is not None:
            loop.lower, loop.upper = of.bounds(units, loop.lower[0], size)
        return step, loop

    def _steps(self, begin: Expr, count: int) -> tuple[Var, For]:
        """Steps from one on, as far as there are any, and the loop over these."""
        step = Var(self.plan.sizes.counts[2], "k")
        return step, For(step, [], lower=(begin,), upper=(begin + count,))


def _registers(shape: tuple[int, ...], element: Any, nbytes: int) -> Buffer:
    return Buffer(shape, element, "local", bytes_per_element=nbytes, space=REGISTERS)
