"""Results of one product as the first operand of the next one, in registers."""

from __future__ import annotations

from typing import Any

from polyblocks.affine.gpu.plans.fragments import exchanges_of, outers_of, steps_of
from polyblocks.affine.gpu.plans.units import UnitPlan
from polyblocks.codegen.gpu.emission.code import Code
from polyblocks.codegen.gpu.emission.combine import from_lane
from polyblocks.codegen.gpu.matrix_emission.operand_reads import as_register
from polyblocks.mlir import ir
from polyblocks.target import MatrixUnit

#: Bytes of what lanes exchange at once.
_WORD = 4
#: Words by the bits of the lanes that had them.
_Words = dict[tuple[int, ...], Any]


class PassedOperand:
    """Writes such operands at the current insertion point.

    Elements are those of the first product's sums, see
    :func:`polyblocks.affine.gpu.plans.fragments.exchanges_of`.

    Args:
        code: of the kernel.
        plan: of the second product.
        adds: the unit of the first product's sums.
        lane: the thread's number in its warp.
        grid: its elements, rows by columns.
    """

    def __init__(
        self, code: Code, plan: UnitPlan, adds: MatrixUnit, lane: Any, grid: list[list[Any]]
    ) -> None:
        self.code, self.plan, self.lane = code, plan, lane
        bits, operand, sums = exchanges_of(plan.unit, adds), plan.unit.first, adds.sums
        assert bits is not None
        assert operand is not None
        assert sums is not None
        self.bits, self.operand, self.sums, self.columns = bits, operand, sums, adds.shape[1]
        self.per_word, self.grid = _WORD // self.plan.element_bytes, grid
        self._own: dict[tuple[int, int], Any] = {}
        self._exchanged: dict[tuple[int, int], _Words] = {}
        self._calls: dict[int, list[list[Any]]] = {}
        #: The lane (the bits alone) that has a column of the unit, and its number among that one's.
        self.source: dict[int, tuple[tuple[int, ...], int]] = {}
        columns = steps_of(self.sums)
        for lane in range(1 << len(bits)):
            pattern = tuple(lane >> position & 1 for position in range(len(bits)))
            first = self.sums.at(0, sum(b << bit for b, bit in zip(pattern, bits, strict=True)))[1]
            for number, column in enumerate(columns):
                self.source.setdefault(column ^ first, (pattern, number))

    def prepare(self) -> None:
        """Put all elements into as few registers as they take."""
        if not self.bits:
            self._calls = {call: self.of_call(call) for call in range(self.plan.calls)}
            return
        for row, elements in enumerate(self.grid):
            for column in range(0, len(elements), self.per_word):
                self._word(row, column)

    def of_call(self, call: int) -> list[list[Any]]:
        """The registers of a call, for each of the warp's units along rows."""
        if call in self._calls:
            return self._calls[call]
        fragment = self.operand
        per = fragment.register_bits // (8 * self.plan.element_bytes)
        register = ir.Type.parse(fragment.register)
        found = []
        for height in range(self.plan.of_warp[0]):
            registers = []
            for first in range(0, fragment.elements, per):
                places = [self._place(height, call, first + n) for n in range(per)]
                if self.bits:
                    vector = self._of_words(places)
                else:
                    values = [self.grid[row][column] for _, row, column in places]
                    type_ = ir.VectorType.get([per], values[0].type)
                    vector = self.code.value("vector.from_elements", type_, *values)
                registers.append(as_register(self.code, vector, register))
            found.append(registers)
        return found

    def _place(self, height: int, call: int, place: int) -> tuple[tuple[int, ...], int, int]:
        """The lane that has an element of the operand, and its row and column in that one's."""
        rows = outers_of(self.sums)
        row, step = self.operand.at(place)
        beside, column = divmod(call * self.plan.unit.shape[2] + step, self.columns)
        pattern, number = self.source[column]
        columns = len(steps_of(self.sums))
        return pattern, height * len(rows) + rows.index(row), beside * columns + number

    def _of_words(self, places: list[tuple[tuple[int, ...], int, int]]) -> Any:
        """Elements of several lanes as a vector of words."""
        code, per = self.code, self.per_word
        given = []
        for first in range(0, len(places), per):
            pattern, row, column = places[first]
            # Neighbours of the operand are neighbours of the sums.
            assert places[first : first + per] == [(pattern, row, column + n) for n in range(per)]
            if (row, column) not in self._exchanged:
                self._exchanged[row, column] = self._of_lanes(self._word(row, column))
            given.append(self._exchanged[row, column][pattern])
        return code.value("vector.from_elements", ir.VectorType.get([len(given)], code.i32), *given)

    def _word(self, row: int, column: int) -> Any:
        """A word of the lane's own elements."""
        if (row, column) not in self._own:
            elements = self.grid[row][column : column + self.per_word]
            type_ = ir.VectorType.get([len(elements)], elements[0].type)
            vector = self.code.value("vector.from_elements", type_, *elements)
            self._own[row, column] = as_register(self.code, vector, self.code.i32)
        return self._own[row, column]

    def _of_lanes(self, own: Any) -> _Words:
        """A word of this lane and those of the lanes whose numbers differ in the bits."""
        code = self.code
        words: _Words = {(): own}
        for bit in self.bits:
            number = code.remainder(code.quotient(self.lane, 1 << bit), 2)
            has = code.compare("eq", number, code.integer(1))
            found: _Words = {}
            for pattern, word in words.items():
                other = from_lane(code, word, 1 << bit, self.plan.warp)
                found[*pattern, 0] = code.value("arith.select", code.i32, has, other, word)
                found[*pattern, 1] = code.value("arith.select", code.i32, has, word, other)
            words = found
        return words
