"""Copies of an operand's tile from memory to shared memory, through registers.

A piece is what a thread takes at once: a chunk of steps of one row (or column); or, where rows (or
columns) follow each other in memory, a chunk of them for two steps. What is beyond the last step is
zero in both operands; what is beyond the last row is any other row, and is not stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from polyblocks.affine.analysis.contractions import Operand
from polyblocks.codegen.gpu.matrix.kernel import along
from polyblocks.mlir import ir

if TYPE_CHECKING:
    from polyblocks.codegen.gpu.matrix.emit import MatrixEmitter

#: Chunks of a row that neighbouring threads copy, at most: 64 bytes of memory in a row.
_NEIGHBOURS = 4


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
        self.chunk = self.kernel.product.steps.chunk
        self.along = along(self.kernel, operand)
        self.element = operand.load.result.type
        self.vector = ir.VectorType.get([self.chunk], self.element)
        self.length = self.kernel.tile[self.side]
        self.pieces = self.kernel.pieces(operand)

    @property
    def _rounds(self) -> range:
        return range(-(-self.pieces // self.kernel.threads))

    def _piece(self, round_: int) -> tuple[Any, Any, Any]:
        """Whether a thread has a piece in a round, its first step and its first row or column."""
        code, kernel = self.code, self.kernel
        number, mine = code.round_of(self.thread, round_, self.pieces, kernel.threads)
        if self.along == "outer":
            pairs = kernel.depth // 2
            step = code.times(code.remainder(number, pairs), 2)
            return mine, step, code.times(code.quotient(number, pairs), self.chunk)
        chunks = kernel.depth // self.chunk
        beside = min(_NEIGHBOURS, chunks)
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
            number = self.code.add(begin, step)
            rows = self.code.add(self.emitter.first[self.side], outer)
            count = 2 if self.along == "outer" else 1

            def one(number: Any = number, rows: Any = rows) -> list[Any]:
                if self.along == "steps":
                    return [self._whole(number, rows, self.chunk)]
                if self.along == "outer":
                    next_ = self.code.add(number, self.code.integer(1))
                    return [self._whole(n, rows, 1) for n in (number, next_)]
                return [self._gathered(number, rows)]

            def nothing(count: int = count) -> list[Any]:
                return [self._zeros()] * count

            found += self.code.when(mine, one, nothing, [self.vector] * count)
        return found

    def store(self, stage: Any, loaded: Iterator[Any]) -> None:
        """Put what was loaded into a stage of the tile."""
        for round_ in self._rounds:
            mine, step, outer = self._piece(round_)
            values = [next(loaded) for _ in range(2 if self.along == "outer" else 1)]

            def put(values: list[Any] = values, step: Any = step, outer: Any = outer) -> list[Any]:
                if self.along == "outer":
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
        code = self.code
        size = self.chunk * self.kernel.together
        place = [code.quotient(step, size), outer, code.remainder(step, size)]
        code.op(
            "vector.store", [], [value, self.emitter.tiles[self.operand], stage, *place],
            None, self.operand.load.location,
        )  # fmt: skip

    # Values

    def _zeros(self) -> Any:
        zero = ir.FloatAttr.get(self.element, 0.0)
        return self.code.constant(ir.DenseElementsAttr.get_splat(self.vector, zero))

    def _at(self, number: Any, outer: Any) -> list[Any]:
        """The place of an element in memory."""
        emitter, kernel = self.emitter, self.kernel
        emitter._decode(number, kernel.parts.reduction.order)
        emitter.variables.update(emitter._values(outer, self.side))
        load = self.operand.load
        return [emitter.memrefs[load.buffer], *(emitter.expr(e) for e in load.index)]

    def _inside(self, number: Any, size: int) -> tuple[Any, Any]:
        """A step from which as many as ``size`` exist, and whether it is that one; None: always."""
        code, count = self.code, self.kernel.counts[2]
        if count % self.kernel.depth == 0:
            return number, None
        last = code.integer(count - size)
        here = code.compare("ult", number, code.integer(count))
        return code.value("arith.minui", code.index, number, last), here

    def _whole(self, number: Any, outer: Any, steps: int) -> Any:
        """A chunk that lies in memory as it is: of steps, or of rows."""
        code = self.code
        number, here = self._inside(number, steps)
        count = self.kernel.counts[self.side]
        if count % self.length:
            last = code.integer(count - (self.chunk if steps == 1 else 1))
            outer = code.value("arith.minui", code.index, outer, last)
        place = self._at(number, outer)
        value = code.op(
            "vector.load", [self.vector], place, None, self.operand.load.location
        ).results[0]
        if here is None:
            return value
        return code.value("arith.select", self.vector, here, value, self._zeros())

    def _gathered(self, number: Any, outer: Any) -> Any:
        """A chunk of steps, element by element."""
        code = self.code
        outer = self.emitter._clamped(outer, self.side)
        zero = self.emitter._zero(self.element)
        elements = []
        for k in range(self.chunk):
            step, here = self._inside(code.add(number, code.integer(k)) if k else number, 1)
            place = self._at(step, outer)
            op = code.op("memref.load", [self.element], place, None, self.operand.load.location)
            value = op.results[0]
            if here is not None:
                value = code.value("arith.select", self.element, here, value, zero)
            elements.append(value)
        return code.value("vector.from_elements", self.vector, *elements)
