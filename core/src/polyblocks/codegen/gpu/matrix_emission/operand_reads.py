"""Reads of operands' registers from shared memory: chunks of each lane, or whole tiles at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

from polyblocks.affine.analysis.contractions import Operand
from polyblocks.affine.gpu.plans.fragments import (
    ACCESS_BYTES,
    PHASE_BYTES,
    TILE,
    outers_of,
    steps_of,
    tiles_of,
)
from polyblocks.affine.gpu.plans.read_schedule import read_together
from polyblocks.codegen.gpu.accesses.pipeline import SHARED
from polyblocks.codegen.gpu.accesses.swizzles import exchanged
from polyblocks.codegen.gpu.emission.code import Code
from polyblocks.codegen.gpu.matrix_emission.scope import UnitScope
from polyblocks.mlir import ir
from polyblocks.target import Fragment

#: Builds operations, and returns values of them.
Action = Callable[[], list[Any]]


class OperandReads:
    """Writes reads at the current insertion point.

    Args:
        scope: of the kernel.
        one_stage: whether operands are in one place. LLVM would find as many addresses as there are
            reads, as it knows all bits of these: constants are added to pointers then.
    """

    def __init__(self, scope: UnitScope, *, one_stage: bool = False) -> None:
        self.scope, self.code, self.plan = scope, scope.code, scope.plan
        assert scope.fragments is not None
        self.fragments, self.one_stage = scope.fragments, one_stage

    def loads_of(self, side: int, stage: Any, call: int) -> list[Action]:
        """Loads of an operand's registers for a call of all units of the warp, in their order."""
        loads = self._lane_loads if self.plan.loads is None else self._tile_loads
        return loads(side, stage, call)

    def _lane_loads(self, side: int, stage: Any, call: int) -> list[Action]:
        """Each is of what is read together."""

        def load(units: tuple[int, ...]) -> list[Any]:
            return [v for part in self.fragments_of(side, stage, call, units) for v in part]

        return [partial(load, units) for units in read_together(self.plan.of_warp[side], False)]

    def of_operand(self, side: int) -> int:
        """Registers of an operand of one call of one unit."""
        fragment = self.fragments[side]
        return fragment.elements * 8 * self.plan.element_bytes // fragment.register_bits

    def fragments_of(
        self, side: int, stage: Any, call: int, units: tuple[int, ...]
    ) -> list[list[Any]]:
        """The registers of an operand for a call of some units."""
        operand, fragment = self.plan.product.operands[side], self.fragments[side]
        if self.plan.loads is not None:
            registers = [v for load in self._tile_loads(side, stage, call) for v in load()]
            size = self.of_operand(side)
            return [registers[unit * size : (unit + 1) * size] for unit in units]
        chunks = (self._chunks(operand, fragment, stage, call, unit) for unit in units)
        return [self._registers(fragment, each) for each in chunks]

    def _chunks(
        self, operand: Operand, fragment: Fragment, stage: Any, call: int, unit: int
    ) -> dict[tuple[int, int], Any]:
        """A lane's operands for a call of one unit: by its row (or column) and chunk."""
        code, plan, steps = self.code, self.plan, self.plan.access.lane_steps
        side, layout = operand.side, plan.layout(operand)
        size, k = plan.unit.shape[side], plan.unit.shape[2]
        first = code.add(
            self.scope.corner[side], self.scope.of_lane([outer for outer, _ in fragment.lanes])
        )
        adds = [0] * len(fragment.lanes)
        for position, bit in enumerate(steps.bits):
            adds[bit] = 1 << position
        mine = self.scope.of_lane(adds)
        memref = self.scope.tiles[operand]
        type_ = ir.VectorType.get([steps.chunk], memref.type.element_type)
        chunks = {}
        period = self._period(operand)
        for offset, j in product(outers_of(fragment), range(steps.chunks)):
            at = unit * size + offset
            near = at % period
            outer = code.add(first, code.integer(near)) if near else first
            outer = exchanged(code, layout, 1, outer, outer)
            begin = call * k + steps.chunk * steps.lanes * j
            here = begin % plan.mixed_steps
            step = code.plus(code.times(mine, steps.chunk), here)
            # The unit's rows begin at multiples of what the places depend on.
            place = exchanged(code, layout, 2, first, step)
            if self.one_stage:
                place = [stage, outer, place]
                plus = (at - near) * plan.sizes.depth + begin - here
                chunks[offset, j] = self._at_constant(operand, type_, place, plus)
                continue
            place = code.plus(place, begin - here)
            chunks[offset, j] = code.value("vector.load", type_, memref, stage, outer, place)
        return chunks

    def _period(self, operand: Operand) -> int:
        """Rows (or columns) after which places are a constant away, where that is of use."""
        if not self.one_stage:
            return self.plan.sizes.tile[operand.side]
        moves = any(swizzle.into == 1 for swizzle in self.plan.layout(operand))
        return PHASE_BYTES // ACCESS_BYTES * self.plan.piece if moves else 1

    def _at_constant(self, operand: Operand, type_: Any, place: list[Any], plus: int) -> Any:
        """A chunk at a place in shared memory and as many elements behind it."""
        code, memref, size = self.code, self.scope.tiles[operand], self.plan.element_bytes
        pointer = code.pointer(code.address(memref, code.place(memref, place), size), SHARED)
        offset = ir.DenseI32ArrayAttr.get([plus * size])
        byte = ir.TypeAttr.get(ir.IntegerType.get_signless(8))
        at = code.value(
            "llvm.getelementptr", pointer.type, pointer, rawConstantIndices=offset, elem_type=byte
        )
        alignment = ir.IntegerAttr.get(code.i64, type_.shape[0] * size)
        return code.value("llvm.load", type_, at, alignment=alignment)

    def _tile_loads(self, side: int, stage: Any, call: int) -> list[Action]:
        """Each loads four tiles, of a register each."""
        plan = self.plan
        operand, fragment = plan.product.operands[side], self.fragments[side]
        size, k = plan.unit.shape[side], plan.unit.shape[2]
        begins = [
            (unit * size + outer, call * k + step)
            for unit in range(plan.of_warp[side])
            for outer, step in tiles_of(fragment, plan.element_bytes)
        ]
        return [
            partial(self._four_tiles, operand, fragment, stage, begins[first : first + 4])
            for first in range(0, len(begins), 4)
        ]

    def _four_tiles(
        self, operand: Operand, fragment: Fragment, stage: Any, begins: list[tuple[int, int]]
    ) -> list[Any]:
        code, plan = self.code, self.plan
        assert plan.loads is not None
        by_columns = plan.is_transposed(operand)
        name = plan.loads.by_columns if by_columns else plan.loads.by_rows
        four = [code.i32] * 4
        result = ir.Type.parse(f"!llvm.struct<({', '.join(map(str, four))})>")
        register = ir.Type.parse(fragment.register)
        place, plus = self._place_of_tiles(by_columns, operand, begins)
        at = self.scope.in_stage(self.scope.tiles[operand], stage, place, plus)
        (struct,) = code.intrinsic(
            name, [result], [code.pointer(at, SHARED)], operand.load.location
        )
        words = code.fields(struct, four)
        if register != code.i32:
            words = [code.value("llvm.bitcast", register, word) for word in words]
        return words

    def _place_of_tiles(
        self, by_columns: bool, operand: Operand, begins: list[tuple[int, int]]
    ) -> tuple[list[Any], int]:
        """Where in a stage the row is whose address the lane gives: of one of four tiles.

        And how many elements behind that: what swizzles do not depend on is a constant, so that
        many loads have one address.
        """
        code, plan = self.code, self.plan
        (outer, step), *others = begins
        # Of the lane's number three bits are for the row of a tile, and two for which tile.
        assert others[2] == tuple(a + b - c for a, b, c in zip(*others[:2], begins[0], strict=True))
        row, none = [1, 2, 4], [0, 0, 0]
        tiles = [[begin[axis] - begins[0][axis] for begin in others[:2]] for axis in (0, 1)]
        outers = self.scope.of_lane([*(none if by_columns else row), *tiles[0]])
        steps = self.scope.of_lane([*(row if by_columns else none), *tiles[1]])
        side, layout = operand.side, plan.layout(operand)
        outers = code.add(self.scope.corner[side], outers)
        if by_columns:
            here = outer % (TILE * plan.piece)
            outers = code.add(outers, code.integer(here))
            outers = exchanged(code, layout, 2, steps, outers)
            return [steps, outers], step * plan.sizes.tile[side] + outer - here
        here = step % plan.mixed_steps
        steps = exchanged(code, layout, 2, outers, code.plus(steps, here))
        if plan.along(operand) == "outer":
            outers = code.plus(outers, outer)
            return [exchanged(code, layout, 1, outers, outers), steps], step - here
        return [outers, steps], outer * plan.sizes.depth + step - here

    def _registers(self, fragment: Fragment, chunks: dict[tuple[int, int], Any]) -> list[Any]:
        """The registers of an operand for one call of a unit."""
        type_ = next(iter(chunks.values())).type
        per = fragment.register_bits // (8 * self.plan.element_bytes)
        order = steps_of(fragment)
        registers = []
        for first in range(0, fragment.elements, per):
            places = [fragment.at(first + k) for k in range(per)]
            wanted = [(outer, order.index(step)) for outer, step in places]
            vector = self._gathered(chunks, wanted, type_)
            register = ir.Type.parse(fragment.register)
            if vector.type != register:
                vector = as_register(self.code, vector, register)
            registers.append(vector)
        return registers

    def _gathered(
        self, chunks: dict[tuple[int, int], Any], wanted: list[tuple[int, int]], type_: Any
    ) -> Any:
        """Elements of a lane's chunks as one vector."""
        code, length = self.code, self.plan.access.lane_steps.chunk
        parts = [wanted[k : k + length] for k in range(0, len(wanted), length)]
        made = []
        for part in parts:
            (outer, j), many = part[0], len(part)
            assert part == [(outer, j + k) for k in range(many)]
            chunk = chunks[outer, j // length]
            if many == length:
                made.append(chunk)
                continue
            made.append(
                code.value(
                    "vector.shuffle",
                    ir.VectorType.get([many], type_.element_type),
                    chunk,
                    chunk,
                    mask=ir.DenseI64ArrayAttr.get([j % length + k for k in range(many)]),
                )
            )
        if len(made) == 1:
            return made[0]
        assert len(made) == 2
        return code.value(
            "vector.shuffle",
            ir.VectorType.get([len(wanted)], type_.element_type),
            *made,
            mask=ir.DenseI64ArrayAttr.get(list(range(len(wanted)))),
        )


def as_register(code: Code, vector: Any, register: Any) -> Any:
    """The same bits as a register of another type."""
    if isinstance(register, ir.VectorType):
        return code.value("vector.bitcast", register, vector)
    one = code.value("vector.bitcast", ir.VectorType.get([1], register), vector)
    return code.value(
        "vector.extract", register, one, static_position=ir.DenseI64ArrayAttr.get([0])
    )
