"""The body of a kernel whose warps call a matrix unit."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from math import prod
from typing import Any

from polyblocks.affine.analysis.contractions import Operand
from polyblocks.affine.model import Buffer, Op
from polyblocks.codegen.gpu.emission.combine import barrier
from polyblocks.codegen.gpu.emission.emit_contraction import ContractionEmitter
from polyblocks.codegen.gpu.matrix.fragments import TILE, outers_of, steps_of, tiles_of
from polyblocks.codegen.gpu.matrix.kernel import MatrixKernel, along
from polyblocks.codegen.gpu.matrix_emission.pipeline import SHARED, Pipeline
from polyblocks.codegen.gpu.matrix_emission.register_pipeline import RegisterPipeline
from polyblocks.codegen.gpu.matrix_emission.sources import BoundedBuffer, Sum
from polyblocks.codegen.gpu.matrix_emission.swizzles import by_rows, by_steps, mixed_steps, row_of
from polyblocks.codegen.gpu.matrix_emission.tile_copy import TileCopy
from polyblocks.codegen.gpu.matrix_emission.wide_epilogue import WideEpilogue, is_wide
from polyblocks.mlir import ir
from polyblocks.target import Fragment

#: Builds operations, and returns values of them.
Action = Callable[[], list[Any]]
#: Of a tile along the reduction; a value where a loop counts.
Number = Any | int


class MatrixEmitter(ContractionEmitter):
    """Writes a matrix kernel's body at the current insertion point.

    While a stage of the operands is used, the next one is on its way through registers, or several
    are past them.
    """

    kernel: MatrixKernel

    def __init__(self, *given: Any, tiles: dict[Operand, Any]) -> None:
        super().__init__(*given, tiles=tiles)
        assert self.kernel.unit.fragments is not None
        self.fragments = self.kernel.unit.fragments
        self.lane: Any = None
        #: Where the warp's tile begins, along rows and along columns of the block's.
        self.corner: list[Any] = []
        self._aligned_memrefs: dict[Buffer, Any] = {}
        self._flat_memrefs: dict[Buffer, Any] = {}
        self._bounded: dict[Operand, BoundedBuffer] = {}

    def aligned(self, buffer: Buffer, nbytes: int) -> Any:
        """The memref of a buffer that has to begin at a multiple of ``nbytes`` bytes."""
        if buffer not in self._aligned_memrefs:
            memref = self.memrefs[buffer]
            with self.code.behind(memref):
                self._aligned_memrefs[buffer] = self.code.value(
                    "memref.assume_alignment",
                    memref.type,
                    memref,
                    alignment=ir.IntegerAttr.get(self.code.i32, nbytes),
                )
        return self._aligned_memrefs[buffer]

    def bounded(self, operand: Operand) -> BoundedBuffer:
        """The buffer of an operand for the chip's bounded loads."""
        if operand not in self._bounded:
            kernel, buffer = self.kernel, operand.load.buffer
            assert kernel.bounded is not None
            # All threads have the same steps, each of rows of its own.
            apart = kernel.window(operand) > 1 and kernel.has_rows_of_threads(operand)
            self._bounded[operand] = BoundedBuffer(
                self.code, kernel.bounded, buffer, self.memrefs[buffer], apart
            )
        return self._bounded[operand]

    def flat(self, buffer: Buffer) -> Any:
        """All elements that a buffer's strides reach, as a memref of one dimension."""
        memref = self.memrefs[buffer]
        steps, offset = memref.type.get_strides_and_offset()
        if steps == [1]:
            return memref
        if buffer not in self._flat_memrefs:
            pairs = zip(memref.type.shape, steps, strict=True)
            span = 1 + sum((extent - 1) * stride for extent, stride in pairs)
            layout = ir.StridedLayoutAttr.get(offset, [1])
            type_ = ir.MemRefType.get(
                [span], memref.type.element_type, layout, memref.type.memory_space
            )
            with self.code.behind(memref):
                self._flat_memrefs[buffer] = self.code.value(
                    "memref.reinterpret_cast",
                    type_,
                    memref,
                    operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, 0, 0, 0]),
                    static_offsets=ir.DenseI64ArrayAttr.get([offset]),
                    static_sizes=ir.DenseI64ArrayAttr.get([span]),
                    static_strides=ir.DenseI64ArrayAttr.get([1]),
                )
        return self._flat_memrefs[buffer]

    def _place_elements(self, thread: Any) -> None:
        """The rows and columns of the lane's sums, as numbers in the block's tile."""
        code, kernel = self.code, self.kernel
        self.lane = code.remainder(thread, kernel.warp)
        warp = code.quotient(thread, kernel.warp)
        numbers = (code.quotient(warp, kernel.warps[1]), code.remainder(warp, kernel.warps[1]))
        sums = self.fragments[2]
        for side, own in enumerate((outers_of(sums), steps_of(sums))):
            size = kernel.unit.shape[side]
            corner = code.times(numbers[side], kernel.of_warp[side] * size)
            self.corner.append(corner)
            first = code.add(corner, self.of_lane([adds[side] for adds in sums.lanes]))
            for unit in range(kernel.of_warp[side]):
                for offset in own:
                    at = unit * size + offset
                    self.places[side].append(code.add(first, code.integer(at)) if at else first)

    def of_lane(self, adds: list[int]) -> Any:
        """The sum of ``adds`` over the set bits of the lane's number; runs of bits are merged."""
        code = self.code
        total = None
        bit = 0
        while bit < len(adds):
            if not adds[bit]:
                bit += 1
                continue
            end = bit + 1
            while end < len(adds) and adds[end] == adds[bit] << (end - bit):
                end += 1
            field = code.remainder(code.quotient(self.lane, 1 << bit), 1 << (end - bit))
            term = code.times(field, adds[bit])
            total = term if total is None else code.add(total, term)
            bit = end
        return code.integer(0) if total is None else total

    # Steps of the reduction

    def _steps(self, thread: Any, inits: list[Any]) -> list[Any]:
        code, kernel = self.code, self.kernel
        copies = [TileCopy(self, operand, thread) for operand in kernel.product.operands]
        if kernel.copies_through_registers:
            sums = RegisterPipeline(self, copies).emit(self._packed(inits))
            return self._unpacked(sums)
        direct = [c for c in copies if c.asynchronous]
        through = [c for c in copies if not c.asynchronous]
        last, rest = divmod(kernel.counts[2] - 1, kernel.depth)
        whole, stages = rest == kernel.depth - 1, kernel.stages
        assert kernel.copies is not None
        pipeline = Pipeline(code, kernel.copies)

        def load(number: Number, exact: bool) -> list[Any]:
            begin = Sum(code.times(self._index(number), kernel.depth))
            return [value for copy in through for value in copy.load(begin, exact)]

        def load_any(number: Number) -> list[Any]:
            """Of a tile that may be the last one, or beyond it."""
            if not through or isinstance(number, int):
                return load(number, whole or number != last)
            nothing = [value for copy in through for value in copy.nothing()]
            there = code.compare("sle", number, code.integer(last))
            types = [value.type for value in nothing]
            return code.when(there, lambda: load(number, whole), lambda: nothing, types)

        def store(stage: Any, loaded: list[Any]) -> None:
            rest = iter(loaded)
            for copy in through:
                copy.store(stage, rest)

        def start(number: Number, stage: Any, copy: TileCopy, round_: int) -> list[Any]:
            begin = Sum(code.times(self._index(number), kernel.depth))
            copy.start(round_, begin, stage, whole or number != last)
            return []

        def starts(number: Number, stage: Any) -> list[Action]:
            """A round of a copy each, if there is such a tile."""
            if isinstance(number, int) and number > last:
                return []
            rounds = ((copy, round_) for copy in direct for round_ in copy.rounds)
            return [partial(start, number, stage, *one) for one in rounds]

        def arrived(on_their_way: int) -> None:
            pipeline.wait(on_their_way)
            barrier(code)

        def tile(number: Number, carried: list[Any], quiet: bool = False) -> list[Any]:
            """The last call on the tile before one, and all others on this one.

            The last call's operands are in registers: its stage may be filled again, beside all of
            these products. A quiet one starts no copy, and may be the last.
            """
            sums, operands, numbers = carried[:count], carried[count:-2], carried[-2:]
            numbers = [*numbers, self._next(numbers[1])]
            before, stage, next_stage = map(code.as_index, numbers)
            is_last = isinstance(number, int) and number == last
            later = self._later(number, 1)
            sure = not quiet and not isinstance(number, int)
            loaded = [] if is_last else load(later, True) if sure else load_any(later)
            copies = [] if quiet else starts(self._later(number, stages - 1), before)
            for call in range(kernel.calls):
                beside = copies[call :: kernel.calls]
                sums, operands = self._step_of(operands, sums, stage, call, beside)
            if not is_last:
                store(next_stage, loaded)
                pipeline.close()
                arrived(stages - 2)
            return [*sums, *operands, *numbers[1:]]

        def loop(begin: int, end: int, carried: list[Any], quiet: bool = False) -> list[Any]:
            low, high, step = (code.integer(n) for n in (begin, end, 1))
            return code.loop(low, high, step, carried, partial(tile, quiet=quiet), kept=True)

        sums = self._packed(inits)
        for first in range(stages):
            for action in starts(first, code.integer(first)):
                action()
            pipeline.close()
        store(code.integer(0), load_any(0))
        arrived(stages - 1)
        operands, count = self._operands(code.integer(0), 0), len(sums)
        loaded = load_any(1) if last else []
        for call in range(1, kernel.calls):
            sums, operands = self._step_of(operands, sums, code.integer(0), call, [])
        if last:
            store(code.integer(1), loaded)
            arrived(stages - 2)
        # The loop copies tiles whose steps all exist, so that no condition precedes the start of
        # a copy; a tile that starts the copy of other steps is written
        # out. Those at the end, which start none, are a loop of their own.
        end = max(last - stages + whole + 1, 1)
        first_quiet = max(last - stages + 2, 1)
        # Narrow numbers take narrow comparisons.
        numbers = [code.integer(number, code.i32) for number in (0, 1)]
        carried = [*sums, *operands, *numbers]
        if end > 1:
            carried = loop(1, end, carried)
        written_out = [*range(end, first_quiet), *([last] if first_quiet == last else [])]
        for number in written_out:
            numbers = [code.integer((number + k) % stages, code.i32) for k in (-1, 0)]
            carried = tile(number, [*carried[:-2], *numbers], quiet=number >= first_quiet)
        if first_quiet < last:
            carried = loop(first_quiet, last + 1, carried, quiet=True)
        sums, operands = carried[:count], carried[count:-2]
        return self._unpacked(self._multiply(operands, sums))

    def _index(self, number: Number) -> Any:
        return self.code.integer(number) if isinstance(number, int) else number

    def _later(self, number: Number, by: int) -> Number:
        return number + by if isinstance(number, int) else self.code.plus(number, by)

    def _step_of(
        self, operands: list[Any], sums: list[Any], stage: Any, call: int, beside: list[Action]
    ) -> tuple[list[Any], list[Any]]:
        """The products of a call; beside them the next call's operands, and other actions.

        They take turns: what all warps ask of shared memory at once is served one by one.
        """
        found: list[list[Any]] = []

        def load(action: Action, at: int) -> list[Any]:
            found[at] = action()
            return []

        actions = [((k + 0.5) / len(beside), action) for k, action in enumerate(beside)]
        for side, loads in enumerate(self._operand_loads(stage, call)):
            for k, action in enumerate(loads):
                # Products go column by column: there are registers for more rows at any time, and
                # for more columns when those before are done.
                when = (k + (0.5, 1.0)[side]) / len(loads) if self.kernel.loads else 0.0
                actions.append((when, partial(load, action, len(found))))
                found.append([])
        actions.sort(key=lambda entry: entry[0])
        sums = self._multiply(operands, sums, actions)
        return sums, [value for values in found for value in values]

    def _next(self, stage: Any) -> Any:
        """The stage after one, both of type ``i32``: counted, not divided."""
        code = self.code
        zero, one, last = (code.integer(n, code.i32) for n in (0, 1, self.kernel.stages - 1))
        following = code.value("arith.addi", code.i32, stage, one)
        is_last = code.compare("eq", stage, last)
        return code.value("arith.select", code.i32, is_last, zero, following)

    def _operands(self, stage: Any, call: int) -> list[Any]:
        """The registers of both operands for one call of all units of the warp."""
        actions = [load for loads in self._operand_loads(stage, call) for load in loads]
        return [value for load in actions for value in load()]

    def _operand_loads(self, stage: Any, call: int) -> list[list[Action]]:
        """Loads of each operand's registers, in the order of these."""
        loads = self._lane_loads if self.kernel.loads is None else self._tile_loads
        return [loads(side, stage, call) for side in range(2)]

    def _lane_loads(self, side: int, stage: Any, call: int) -> list[Action]:
        """Each is of what is read together."""

        def load(units: tuple[int, ...]) -> list[Any]:
            return [v for part in self.fragments_of(side, stage, call, units) for v in part]

        return [partial(load, units) for units in self.read_together(side)]

    def read_together(self, side: int) -> list[tuple[int, ...]]:
        """The units of the warp along rows, or columns, whose operands one read is for."""
        units = range(self.kernel.of_warp[side])
        return [(unit,) for unit in units] if self.kernel.loads is None else [tuple(units)]

    def of_operand(self, side: int) -> int:
        """Registers of an operand of one call of one unit."""
        fragment = self.fragments[side]
        return fragment.elements * 8 * self.kernel.element_bytes // fragment.register_bits

    def fragments_of(
        self, side: int, stage: Any, call: int, units: tuple[int, ...]
    ) -> list[list[Any]]:
        """The registers of an operand for a call of some units."""
        operand, fragment = self.kernel.product.operands[side], self.fragments[side]
        if self.kernel.loads is not None:
            registers = [v for load in self._tile_loads(side, stage, call) for v in load()]
            size = self.of_operand(side)
            return [registers[unit * size : (unit + 1) * size] for unit in units]
        chunks = (self._chunks(operand, fragment, stage, call, unit) for unit in units)
        return [self._registers(fragment, each) for each in chunks]

    def _multiply(
        self, operands: list[Any], sums: list[Any], beside: Sequence[tuple[float, Action]] = ()
    ) -> list[Any]:
        """The products of a call of all units of the warp, added to the sums.

        Args:
            operands, sums: registers.
            beside: what else is done, in order, and after which part of the products.
        """
        rows, columns = self.kernel.of_warp
        split = rows * self.of_operand(0)
        first, second = (
            [part[i : i + size] for i in range(0, len(part), size)]
            for part, size in (
                (operands[:split], self.of_operand(0)),
                (operands[split:], self.of_operand(1)),
            )
        )
        rest = deque(beside)
        places = list(product(range(rows), range(columns)))
        if self.kernel.loads is not None:
            places.sort(key=lambda place: place[1])
        for number, (i, j) in enumerate(places):
            while rest and rest[0][0] * len(places) <= number:
                rest.popleft()[1]()
            sums = self.multiplied(first[i], second[j], sums, i, j)
        for _, action in rest:
            action()
        return sums

    def multiplied(
        self, first: list[Any], second: list[Any], sums: list[Any], i: int, j: int
    ) -> list[Any]:
        """The sums with the product of one unit of the warp added, that of a row and a column."""
        rows, columns = self.kernel.of_warp
        of_sums = len(sums) // (rows * columns)
        at = (i * columns + j) * of_sums
        added = self._call([*first, *second], sums[at : at + of_sums])
        return [*sums[:at], *added, *sums[at + of_sums :]]

    def _call(self, operands: list[Any], sums: list[Any]) -> list[Any]:
        code = self.code
        types = [v.type for v in sums]
        result = types[0]
        if len(types) > 1:
            result = ir.Type.parse(f"!llvm.struct<({', '.join(map(str, types))})>")
        given = [*operands, *sums]
        for position, yes in self.kernel.unit.immediates:
            given.insert(position, code.constant(ir.IntegerAttr.get(code.i1, int(yes))))
        made = code.intrinsic(self.kernel.unit.intrinsic, [result], given, self._location())
        return made if len(types) == 1 else code.fields(made[0], types)

    def _location(self) -> Any:
        """Of the sum, for findings and errors."""
        inner = self.kernel.parts.reduction.loops[-1]
        ops = (n for n in inner.body if isinstance(n, Op))
        return next(op.location for op in ops if inner.yields[0] in op.results)

    # Operands

    def _chunks(
        self, operand: Operand, fragment: Fragment, stage: Any, call: int, unit: int
    ) -> dict[tuple[int, int], Any]:
        """A lane's operands for a call of one unit: by its row (or column) and chunk."""
        code, kernel, steps = self.code, self.kernel, self.kernel.product.steps
        side = operand.side
        size, k = kernel.unit.shape[side], kernel.unit.shape[2]
        first = code.add(self.corner[side], self.of_lane([outer for outer, _ in fragment.lanes]))
        adds = [0] * len(fragment.lanes)
        for position, bit in enumerate(steps.bits):
            adds[bit] = 1 << position
        mine = self.of_lane(adds)
        memref = self.tiles[operand]
        type_ = ir.VectorType.get([steps.chunk], memref.type.element_type)
        chunks = {}
        for offset, j in product(outers_of(fragment), range(steps.chunks)):
            at = unit * size + offset
            outer = code.add(first, code.integer(at)) if at else first
            if along(kernel, operand) == "outer":
                outer = row_of(code, kernel, outer)
            begin = call * k + steps.chunk * steps.lanes * j
            here = begin % mixed_steps(kernel)
            step = code.plus(code.times(mine, steps.chunk), here)
            # The unit's rows begin at multiples of what the places depend on.
            place = code.plus(by_rows(code, kernel, first, step), begin - here)
            chunks[offset, j] = code.value("vector.load", type_, memref, stage, outer, place)
        return chunks

    def _tile_loads(self, side: int, stage: Any, call: int) -> list[Action]:
        """Each loads four tiles, of a register each."""
        kernel = self.kernel
        operand, fragment = kernel.product.operands[side], self.fragments[side]
        size, k = kernel.unit.shape[side], kernel.unit.shape[2]
        begins = [
            (unit * size + outer, call * k + step)
            for unit in range(kernel.of_warp[side])
            for outer, step in tiles_of(fragment, kernel.element_bytes)
        ]
        return [
            partial(self._four_tiles, operand, fragment, stage, begins[first : first + 4])
            for first in range(0, len(begins), 4)
        ]

    def _four_tiles(
        self, operand: Operand, fragment: Fragment, stage: Any, begins: list[tuple[int, int]]
    ) -> list[Any]:
        code, kernel = self.code, self.kernel
        assert kernel.loads is not None
        by_columns = kernel.is_transposed(operand)
        name = kernel.loads.by_columns if by_columns else kernel.loads.by_rows
        four = [code.i32] * 4
        result = ir.Type.parse(f"!llvm.struct<({', '.join(map(str, four))})>")
        register = ir.Type.parse(fragment.register)
        place, plus = self._place_of_tiles(by_columns, operand, begins)
        at = self.in_stage(self.tiles[operand], stage, place, plus)
        (struct,) = code.intrinsic(
            name, [result], [code.pointer(at, SHARED)], operand.load.location
        )
        words = code.fields(struct, four)
        if register != code.i32:
            words = [code.value("llvm.bitcast", register, word) for word in words]
        return words

    def in_stage(self, memref: Any, stage: Any, place: list[Any], plus: int) -> Any:
        """The address of a place in a stage, plus ``plus`` elements.

        Terms that do not depend on the stage come first: they are computed once.
        """
        code, size = self.code, self.kernel.element_bytes
        at = code.address(memref, code.place(memref, [code.integer(0), *place]), size)
        at = code.add(at, code.times(stage, prod(memref.type.shape[1:]) * size))
        return code.plus(at, plus * size)

    def _place_of_tiles(
        self, by_columns: bool, operand: Operand, begins: list[tuple[int, int]]
    ) -> tuple[list[Any], int]:
        """Where in a stage the row is whose address the lane gives: of one of four tiles.

        And how many elements behind that: what swizzles do not depend on is a constant, so that
        many loads have one address.
        """
        code, kernel = self.code, self.kernel
        (outer, step), *others = begins
        # Of the lane's number three bits are for the row of a tile, and two for which tile.
        assert others[2] == tuple(a + b - c for a, b, c in zip(*others[:2], begins[0], strict=True))
        row, none = [1, 2, 4], [0, 0, 0]
        tiles = [[begin[axis] - begins[0][axis] for begin in others[:2]] for axis in (0, 1)]
        outers = self.of_lane([*(none if by_columns else row), *tiles[0]])
        steps = self.of_lane([*(row if by_columns else none), *tiles[1]])
        side = operand.side
        outers = code.add(self.corner[side], outers)
        if by_columns:
            here = outer % (TILE * kernel.piece)
            outers = by_steps(code, kernel, steps, code.add(outers, code.integer(here)))
            return [steps, outers], step * kernel.tile[side] + outer - here
        here = step % mixed_steps(kernel)
        steps = by_rows(code, kernel, outers, code.plus(steps, here))
        if along(kernel, operand) == "outer":
            outers = row_of(code, kernel, code.plus(outers, outer))
            return [outers, steps], step - here
        return [outers, steps], outer * kernel.depth + step - here

    def _registers(self, fragment: Fragment, chunks: dict[tuple[int, int], Any]) -> list[Any]:
        """The registers of an operand for one call of a unit."""
        type_ = next(iter(chunks.values())).type
        per = fragment.register_bits // (8 * self.kernel.element_bytes)
        order = steps_of(fragment)
        registers = []
        for first in range(0, fragment.elements, per):
            places = [fragment.at(first + k) for k in range(per)]
            wanted = [(outer, order.index(step)) for outer, step in places]
            vector = self._gathered(chunks, wanted, type_)
            register = ir.Type.parse(fragment.register)
            if vector.type != register:
                vector = self._as(vector, register)
            registers.append(vector)
        return registers

    def _gathered(
        self, chunks: dict[tuple[int, int], Any], wanted: list[tuple[int, int]], type_: Any
    ) -> Any:
        """Elements of a lane's chunks as one vector."""
        code, length = self.code, self.kernel.product.steps.chunk
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

    def _as(self, vector: Any, register: Any) -> Any:
        """The same bits as a register of another type."""
        code = self.code
        if isinstance(register, ir.VectorType):
            return code.value("vector.bitcast", register, vector)
        one = code.value("vector.bitcast", ir.VectorType.get([1], register), vector)
        return code.value(
            "vector.extract", register, one, static_position=ir.DenseI64ArrayAttr.get([0])
        )

    # Sums

    def _order(self) -> Iterator[list[tuple[int, int]]]:
        """For each register of the warp's sums the lane's elements that are in it."""
        kernel, sums = self.kernel, self.fragments[2]
        rows, columns = outers_of(sums), steps_of(sums)
        per = sums.register_bits // 32
        for i in range(kernel.of_warp[0]):
            for j in range(kernel.of_warp[1]):
                for first in range(0, sums.elements, per):
                    places = [sums.at(first + k) for k in range(per)]
                    yield [
                        (i * len(rows) + rows.index(row), j * len(columns) + columns.index(column))
                        for row, column in places
                    ]

    def _finish(self, carried: list[Any], inside: list[list[Any]]) -> None:
        if is_wide(self.kernel):
            WideEpilogue(self, self.code.id("thread")).emit(carried)
        else:
            super()._finish(carried, inside)

    def _packed(self, values: list[Any]) -> list[Any]:
        """The sums of all elements, in the order of these, as registers."""
        code, width = self.code, self.kernel.of_thread[1]
        register = ir.Type.parse(self.fragments[2].register)
        found = []
        for elements in self._order():
            given = [values[i * width + j] for i, j in elements]
            if isinstance(register, ir.VectorType):
                found.append(code.value("vector.from_elements", register, *given))
            else:
                found += given
        return found

    def _unpacked(self, registers: list[Any]) -> list[Any]:
        code, width = self.code, self.kernel.of_thread[1]
        found: list[Any] = [None] * len(list(self._elements()))
        for elements, register in zip(self._order(), registers, strict=True):
            is_vector = isinstance(register.type, ir.VectorType)
            values = code.elements(register) if is_vector else [register]
            for (i, j), value in zip(elements, values, strict=True):
                found[i * width + j] = value
        return found
