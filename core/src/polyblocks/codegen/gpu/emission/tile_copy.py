"""Copies of an operand's tile from memory to shared memory, through registers or past them.

A piece is what a thread takes at once: a chunk of steps of one row (or column); or, where rows (or
columns) follow each other in memory, a chunk of them for two steps. What is beyond the last step is
zero in both operands; what is beyond the last row is any other row, and is not stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from polyblocks.affine.access import address
from polyblocks.affine.analysis.contractions import Operand
from polyblocks.affine.element import zero_of
from polyblocks.codegen.gpu.emission.pipeline import Pipeline
from polyblocks.codegen.gpu.emission.swizzles import by_rows, by_steps
from polyblocks.codegen.gpu.matrix.kernel import along
from polyblocks.mlir import ir

if TYPE_CHECKING:
    from polyblocks.codegen.gpu.emission.emit_matrix import MatrixEmitter


class TileCopy:
    """The part of one thread in the copies of an operand.

    Args:
        emitter: of the kernel.
        operand: what is copied.
        thread: its number in the block.
    """

    def __init__(self, emitter: MatrixEmitter, operand: Operand, thread: Any) -> None:
        self.emitter, self.operand, self.thread = emitter, operand, thread
        self.code, self.kernel = emitter.code, emitter.kernel
        self.side = 0 if operand.of_rows else 1
        self.chunk = self.kernel.piece
        self.along = along(self.kernel, operand)
        self.linear = self.kernel.product.linear[self.side]
        self.element = operand.load.result.type
        self.vector = ir.VectorType.get([self.chunk], self.element)
        self.length = self.kernel.tile[self.side]
        self.pieces = self.kernel.pieces(operand)
        self.transposed = self.kernel.is_transposed(operand)
        self.asynchronous = self.kernel.is_asynchronous(operand)

    @property
    def _in_pairs(self) -> bool:
        return self.along == "outer" and not self.transposed

    @property
    def _rounds(self) -> range:
        return range(-(-self.pieces // self.kernel.threads))

    def _piece(self, round_: int) -> tuple[Any, Any, Any]:
        """Whether a thread has a piece in a round, its first step and its first row or column."""
        code, kernel = self.code, self.kernel
        number, mine = code.round_of(self.thread, round_, self.pieces, kernel.threads)
        if self.transposed:
            chunks = self.length // self.chunk
            outer = code.times(code.remainder(number, chunks), self.chunk)
            return mine, code.quotient(number, chunks), outer
        if self.along == "outer":
            pairs = kernel.depth // 2
            step = code.times(code.remainder(number, pairs), 2)
            return mine, step, code.times(code.quotient(number, pairs), self.chunk)
        beside = kernel.beside
        rest = code.quotient(number, beside)
        outer = code.remainder(rest, self.length)
        group = code.times(code.quotient(rest, self.length), beside)
        chunk = code.add(group, code.remainder(number, beside))
        return mine, code.times(chunk, self.chunk), outer

    def load(self, begin: Any) -> list[Any]:
        """What the thread copies of the tile that begins at a step."""
        found = []
        for round_ in self._rounds:
            mine, step, outer = self._piece(round_)
            rows = self.code.add(self.emitter.first[self.side], outer)
            count = 2 if self._in_pairs else 1

            def one(step: Any = step, rows: Any = rows) -> list[Any]:
                if self.along == "steps":
                    return [self._whole(begin, step, rows, self.chunk)]
                if self.transposed:
                    return [self._whole(begin, step, rows, 1)]
                if self.along == "outer":
                    next_ = self.code.add(step, self.code.integer(1))
                    return [self._whole(begin, n, rows, 1) for n in (step, next_)]
                return [self._gathered(begin, step, rows)]

            def nothing(count: int = count) -> list[Any]:
                return [self._zeros()] * count

            found += self.code.when(mine, one, nothing, [self.vector] * count)
        return found

    def start(self, begin: Any, stage: Any) -> None:
        """Copy the tile that begins at a step to a stage, past the registers."""
        code, load = self.code, self.operand.load
        assert self.kernel.copies is not None
        pipeline = Pipeline(code, self.kernel.copies)
        size = load.buffer.bytes_per_element
        memref = self.emitter.aligned(load.buffer, self.kernel.copies.bytes)
        tile = self.emitter.tiles[self.operand]
        for round_ in self._rounds:
            mine, step, outer = self._piece(round_)

            def one(step: Any = step, outer: Any = outer) -> list[Any]:
                rows = code.add(self.emitter.first[self.side], outer)
                source, here = self._source(begin, step, rows, 1 if self.transposed else self.chunk)
                count = code.constant(ir.IntegerAttr.get(code.i32, self.chunk * size))
                if here is not None:
                    none = code.constant(ir.IntegerAttr.get(code.i32, 0))
                    count = code.value("arith.select", code.i32, here, count, none)
                to = code.place(tile, [stage, *self._place(step, outer)])
                pipeline.start(
                    code.address(tile, to, size),
                    code.address(memref, source, size),
                    count,
                    load.location,
                )
                return []

            code.when(mine, one)

    def store(self, stage: Any, loaded: Iterator[Any]) -> None:
        """Put what was loaded into a stage of the tile."""
        for round_ in self._rounds:
            mine, step, outer = self._piece(round_)
            values = [next(loaded) for _ in range(2 if self._in_pairs else 1)]

            def put(values: list[Any] = values, step: Any = step, outer: Any = outer) -> list[Any]:
                if self._in_pairs:
                    self._put_pairs(stage, step, outer, *values)
                else:
                    self._put(stage, step, outer, values[0])
                return []

            self.code.when(mine, put)

    def _put_pairs(self, stage: Any, step: Any, outer: Any, first: Any, second: Any) -> None:
        """Two steps of a chunk of rows: a pair for each row."""
        code = self.code
        pair = ir.VectorType.get([2], self.element)
        for k in range(self.chunk):
            mask = ir.DenseI64ArrayAttr.get([k, self.chunk + k])
            value = code.value("vector.shuffle", pair, first, second, mask=mask)
            self._put(stage, step, code.add(outer, code.integer(k)) if k else outer, value)

    def _put(self, stage: Any, step: Any, outer: Any, value: Any) -> None:
        place = [stage, *self._place(step, outer)]
        self.code.op(
            "vector.store", [], [value, self.emitter.tiles[self.operand], *place],
            None, self.operand.load.location,
        )  # fmt: skip

    def _place(self, step: Any, outer: Any) -> list[Any]:
        """Where a step of a row (or column) is in a stage."""
        if self.transposed:
            return [step, by_steps(self.code, self.kernel, step, outer)]
        return [outer, by_rows(self.code, self.kernel, outer, step)]

    # Values

    def _zeros(self) -> Any:
        return self.code.constant(
            ir.DenseElementsAttr.get_splat(self.vector, zero_of(self.element))
        )

    def _source(self, begin: Any, step: Any, outer: Any, steps: int) -> tuple[Any, Any]:
        """Where a piece begins in memory, in elements, and whether it is there; None: always.

        Args:
            begin: the first step of the tile.
            step, outer: of the piece, counted from there, and the row (or column).
            steps: of the piece; 1 where it is of so many rows (or columns), or of one element.
        """
        code, emitter = self.code, self.emitter
        order, load = self.kernel.product.order, self.operand.load
        whole = self.along == "outer"
        outer = self._outer(outer, self.chunk if whole else 1)
        last = order[-1]
        if not self.linear and last.extent % self.kernel.depth == 0:
            # All of a tile's steps have the other loops' variables in common.
            emitter._decode(begin, order)
            emitter.variables[last] = code.add(emitter.variables[last], step)
            here = None
        else:
            number, here = self._inside(code.add(begin, step), steps)
            if self.linear:
                emitter.variables.update(dict.fromkeys(order, code.integer(0)))
                emitter.variables[last] = number
            else:
                emitter._decode(number, order)
        emitter.variables.update(emitter._values(outer, self.side))
        source = emitter.expr(address(load.buffer, load.index))
        holds = emitter.holds(load.where)
        conditions = [c for c in (here, holds) if c is not None]
        if holds is not None:
            source = code.value("arith.select", code.index, holds, source, code.integer(0))
        return source, code.both(conditions)

    def _inside(self, number: Any, size: int) -> tuple[Any, Any]:
        """A step from which as many as ``size`` exist, and whether it is that one; None: always."""
        code, count = self.code, self.kernel.counts[2]
        if count % self.kernel.depth == 0:
            return number, None
        last = code.integer(count - size)
        here = code.compare("ult", number, code.integer(count))
        return code.value("arith.minui", code.index, number, last), here

    def _outer(self, number: Any, size: int) -> Any:
        """A row (or column) from which as many as ``size`` exist."""
        count = self.kernel.counts[self.side]
        if count % self.length == 0:
            return number
        last = self.code.integer(count - size)
        return self.code.value("arith.minui", self.code.index, number, last)

    def _whole(self, begin: Any, step: Any, outer: Any, steps: int) -> Any:
        """A chunk that lies in memory as it is: of steps, or of rows."""
        code, load = self.code, self.operand.load
        source, here = self._source(begin, step, outer, steps)
        memref = self.emitter.flat(load.buffer)
        value = code.op("vector.load", [self.vector], [memref, source], None, load.location)
        if here is None:
            return value.results[0]
        return code.value("arith.select", self.vector, here, value.results[0], self._zeros())

    def _gathered(self, begin: Any, step: Any, outer: Any) -> Any:
        """A chunk of steps, element by element."""
        code, load = self.code, self.operand.load
        memref = self.emitter.flat(load.buffer)
        zero = self.emitter._zero(self.element)
        elements = []
        for k in range(self.chunk):
            at = code.add(step, code.integer(k)) if k else step
            source, here = self._source(begin, at, outer, 1)
            op = code.op("memref.load", [self.element], [memref, source], None, load.location)
            value = op.results[0]
            if here is not None:
                value = code.value("arith.select", self.element, here, value, zero)
            elements.append(value)
        return code.value("vector.from_elements", self.vector, *elements)
