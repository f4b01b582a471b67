"""Copies of an operand's tile from memory to shared memory, through registers or past them.

A piece is one access of a thread: a chunk of steps of one row (or column); or, where rows (or
columns) follow each other in memory, a chunk of them for two steps; or a single step, where steps
follow each other but no chunk of them can be loaded at once. Where nothing does, neighbouring
threads take neighbouring rows, and load a chunk of steps one by one. Elements beyond the last step
are zero in both operands; rows beyond the last one are any other row, and are not stored.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from polyblocks.affine.analysis.contractions import Operand
from polyblocks.affine.element import zero_of
from polyblocks.affine.gpu.plans.fragments import ACCESS_BYTES, PHASE_BYTES, TILE
from polyblocks.codegen.gpu.accesses.bounded import can_be_bounded
from polyblocks.codegen.gpu.accesses.pipeline import Pipeline
from polyblocks.codegen.gpu.accesses.places import Source, Sum
from polyblocks.codegen.gpu.accesses.swizzles import exchanged
from polyblocks.codegen.gpu.matrix_emission.scope import UnitScope
from polyblocks.codegen.gpu.matrix_emission.sources import Sources
from polyblocks.mlir import ir


class TileCopy:
    """The part of one thread in the copies of an operand.

    Args:
        scope: of the kernel.
        operand: what is copied.
        thread: its number in the block.
    """

    def __init__(self, scope: UnitScope, operand: Operand, thread: Any) -> None:
        self.scope, self.operand, self.thread = scope, operand, thread
        self.code, self.plan = scope.code, scope.plan
        self.side = operand.side
        self.along = self.plan.along(operand)
        self.chunk = self.plan.piece if self.along != "step" else 1
        self.sources = Sources(scope, operand)
        self.element = operand.load.result.type
        self.vector = ir.VectorType.get([self.chunk], self.element)
        self.on_the_way = operand.on_the_way
        self.length = self.plan.sizes.tile[self.side]
        self.pieces = self.plan.pieces(operand)
        self.transposed = self.plan.is_transposed(operand)
        self.asynchronous = self.plan.is_asynchronous(operand)
        self.window = self.plan.window(operand)
        self.layout = self.plan.layout(operand)

    @property
    def _in_pairs(self) -> bool:
        return self.along == "outer" and not self.transposed

    @property
    def rounds(self) -> range:
        """The rounds in which the threads take the pieces of a tile."""
        return range(-(-self.pieces // self.plan.threads))

    def _piece(self, round_: int) -> tuple[Any, Sum, Sum]:
        """Whether a thread has a piece in a round, its first step and its first row or column."""
        code, threads = self.code, self.plan.threads
        if self.window > 1:
            chunks = self._run // self.chunk
            first, rows = round_ % chunks * self.chunk, round_ // chunks * threads
            if self.plan.has_rows_of_threads(self.operand):
                return None, Sum(code.integer(0), first), Sum(self.thread, rows)
            group = code.times(code.quotient(self.thread, self.length), self._run)
            return None, Sum(group, first), Sum(code.remainder(self.thread, self.length), rows)
        number, mine = code.round_of(self.thread, round_, self.pieces, threads)
        # Rounds that are as long as what is counted apart differ by constants.
        inner, outer = self._counted
        if threads % inner == 0 and (
            threads % (inner * outer) == 0 or inner * outer % threads == 0
        ):
            done = round_ * (threads // inner)
            return mine, *self._of(self.thread, done // outer, done % outer)
        return mine, *self._of(number, 0, 0)

    @property
    def _run(self) -> int:
        """Steps that a thread takes of a row whose windows' places it knows."""
        return self.plan.sizes.depth * self.length // max(self.plan.threads, self.length)

    @property
    def _counted(self) -> tuple[int, int]:
        """Pieces that neighbouring threads take, and how many such lines of them make a group."""
        if self.transposed:
            return self.length // self.chunk, self.plan.sizes.depth
        if self.along == "outer":
            return self.plan.sizes.depth // 2, self.length // self.chunk
        if self.along == "step":
            return self.plan.sizes.depth, self.length
        if not self.along:
            return self.length, self.plan.sizes.depth // self.chunk
        return self.plan.beside, self.length

    def _of(self, number: Any, groups: int, rows: int) -> tuple[Sum, Sum]:
        """The first step and row (or column) of a piece, ``groups`` groups and ``rows`` rows on."""
        code = self.code
        inner, outer = self._counted
        first, rest = code.remainder(number, inner), code.quotient(number, inner)
        if self.transposed:
            return Sum(rest, groups * outer + rows), Sum(code.times(first, self.chunk))
        if self.along == "outer":
            row = code.times(rest, self.chunk)
            return Sum(code.times(first, 2)), Sum(row, (groups * outer + rows) * self.chunk)
        if not self.along:
            return Sum(code.times(rest, self.chunk), (groups * outer + rows) * self.chunk), Sum(
                first
            )
        group = code.times(code.quotient(rest, outer), inner)
        step = code.times(code.add(group, first), self.chunk)
        on = groups * inner * self.chunk
        return Sum(step, on), Sum(code.remainder(rest, outer), rows)

    @property
    def loaded(self) -> list[Any]:
        """The types of what the thread copies of a tile."""
        if self.window > 1:
            return [self.element] * (self.chunk * len(self.rounds))
        return [self.vector] * ((2 if self._in_pairs else 1) * len(self.rounds))

    def load(self, begin: Sum, whole: bool) -> list[Any]:
        """The thread's loads of the tile that begins at a step; ``whole``: all steps exist.

        Elements of windows are put together where they are stored: assemblers keep that place, and
        what is in front of the products would wait for the loads there.
        """
        if self.window > 1:
            return self._windows(begin)
        found = []
        for round_ in self.rounds:
            mine, step, outer = self._piece(round_)
            count = 2 if self._in_pairs else 1

            def one(step: Sum = step, outer: Sum = outer) -> list[Any]:
                if not self.along:
                    return [self._gathered(begin, step, outer, whole)]
                if not self._in_pairs:
                    return [self._whole(begin, step, outer, whole)]
                two = (Sum(step.value, step.plus + k) for k in (0, 1))
                return [self._whole(begin, one, outer, whole) for one in two]

            def none(count: int = count) -> list[Any]:
                return [self._zeros()] * count

            found += self.code.when(mine, one, none, [self.vector] * count)
        return found

    def nothing(self) -> list[Any]:
        """The result of :meth:`load`, of zeros."""
        if self.window > 1:
            return [self.scope.tile.nodes.zero(self.element)] * len(self.loaded)
        return [self._zeros()] * len(self.loaded)

    def start(self, round_: int, begin: Sum, stage: Any, whole: bool) -> None:
        """Copy a piece of the tile that begins at a step to a stage, past the registers."""
        code, load = self.code, self.operand.load
        assert self.plan.copies is not None
        pipeline = Pipeline(code, self.plan.copies)
        size = load.buffer.bytes_per_element
        memref = self.scope.aligned(load.buffer, self.plan.copies.bytes)
        tile = self.scope.tiles[self.operand]
        mine, step, outer = self._piece(round_)

        def one() -> list[Any]:
            source = self.sources.at(begin, step, outer, self._size, whole, asked=True)
            count = code.constant(ir.IntegerAttr.get(code.i32, self.chunk * size))
            if source.there is not None:
                none = code.constant(ir.IntegerAttr.get(code.i32, 0))
                count = code.value("arith.select", code.i32, source.there, count, none)
            place, plus = self._place(step, outer)
            pipeline.start(
                self.scope.in_stage(tile, stage, place, plus),
                self._address(memref, source, size),
                count,
                load.location,
            )
            return []

        code.when(mine, one)

    def _address(self, memref: Any, source: Source, size: int) -> Any:
        """Where a piece is in memory: the same for all threads, and what each adds to it."""
        code = self.code
        address = code.address(memref, source.of_steps, size)
        address = code.add(address, code.times(source.of_rows, size))
        return self.code.plus(address, source.plus * size)

    @property
    def _size(self) -> tuple[int, int]:
        """Steps and rows (or columns) of a piece that lies in memory as it is."""
        return (1, self.chunk) if self.along == "outer" else (self.chunk, 1)

    def store(self, stage: Any, loaded: Iterator[Any]) -> None:
        """Put what was loaded into a stage of the tile."""
        for round_ in self.rounds:
            mine, step, outer = self._piece(round_)
            if self.window > 1:
                elements = itertools.islice(loaded, self.chunk)
                values = [self.code.value("vector.from_elements", self.vector, *elements)]
            else:
                values = [next(loaded) for _ in range(2 if self._in_pairs else 1)]

            def put(values: list[Any] = values, step: Sum = step, outer: Sum = outer) -> list[Any]:
                values = [self._rounded(value) for value in values]
                if self._in_pairs:
                    self._put_pairs(stage, step, outer, *values)
                else:
                    self._put(stage, step, outer, values[0])
                return []

            self.code.when(mine, put)

    def _put_pairs(self, stage: Any, step: Sum, outer: Sum, first: Any, second: Any) -> None:
        """Two steps of a chunk of rows: a pair for each row."""
        code = self.code
        pair = ir.VectorType.get([2], first.type.element_type)
        for k in range(self.chunk):
            mask = ir.DenseI64ArrayAttr.get([k, self.chunk + k])
            value = code.value("vector.shuffle", pair, first, second, mask=mask)
            # The swizzle depends on the row.
            row = self.code.plus(outer.value, k)
            self._put(stage, step, Sum(row, outer.plus), value)

    def _put(self, stage: Any, step: Sum, outer: Sum, value: Any) -> None:
        place, plus = self._place(step, outer)
        tile = self.scope.tiles[self.operand]
        row, column = divmod(plus, tile.type.shape[-1])
        place = [stage, self.code.plus(place[0], row), self.code.plus(place[1], column)]
        self.code.op("vector.store", [], [value, tile, *place], None, self.operand.load.location)

    def _place(self, step: Sum, outer: Sum) -> tuple[list[Any], int]:
        """Where a step of a row (or column) is in a stage, and how many elements behind that.

        Swizzles repeat after this number of rows, or steps.
        """
        code, plan = self.code, self.plan
        if self.transposed:
            width = plan.shape(self.operand)[-1]
            here, plus = step.plus % TILE, step.plus // TILE * TILE * width
            first, column = self.code.plus(step.value, here), outer.value
            assert not outer.plus
            if width < self.length:
                panel = code.times(code.quotient(column, width), plan.sizes.depth)
                first, column = code.add(panel, first), code.remainder(column, width)
            return [first, exchanged(code, self.layout, 2, first, column)], plus
        line = plan.mixed_steps
        period = PHASE_BYTES // ACCESS_BYTES * (plan.piece if self._in_pairs else 1)
        here, plus = outer.plus % period, outer.plus // period * period * plan.sizes.depth
        row = self.code.plus(outer.value, here)
        on = step.plus % line
        column = exchanged(code, self.layout, 2, row, self.code.plus(step.value, on))
        row = exchanged(code, self.layout, 1, row, row)
        return [row, column], plus + step.plus - on

    # Values

    def _rounded(self, vector: Any) -> Any:
        """Elements of memory, converted to the unit's type."""
        code = self.code
        for op in self.on_the_way:
            type_ = ir.VectorType.get([self.chunk], op.results[0].type)
            if op.name != "llvm.call_intrinsic":
                done = code.op(op.name, [type_], [vector], op.attributes, op.location)
                vector = done.results[0]
                continue
            elements = [
                code.op(op.name, [type_.element_type], [e], op.attributes, op.location).results[0]
                for e in code.elements(vector)
            ]
            vector = code.value("vector.from_elements", type_, *elements)
        return vector

    def _zeros(self) -> Any:
        return self.code.constant(
            ir.DenseElementsAttr.get_splat(self.vector, zero_of(self.element))
        )

    def _whole(self, begin: Sum, step: Sum, outer: Sum, whole: bool) -> Any:
        """A chunk that lies in memory as it is: of steps, or of rows."""
        source = self.sources.at(begin, step, outer, self._size, whole)
        return self._loaded(source, "vector.load", self.vector, self._zeros())

    def _gathered(self, begin: Sum, step: Sum, outer: Sum, whole: bool) -> Any:
        """A chunk of steps, element by element."""
        zero = self.scope.tile.nodes.zero(self.element)
        elements = []
        for k in range(self.chunk):
            at = Sum(step.value, step.plus + k)
            source = self.sources.at(begin, at, outer, (1, 1), whole)
            elements.append(self._loaded(source, "memref.load", self.element, zero))
        return self.code.value("vector.from_elements", self.vector, *elements)

    def _windows(self, begin: Sum) -> list[Any]:
        """All elements of a tile, chunk by chunk: those at each place in a window at once."""
        zero = self.scope.tile.nodes.zero(self.element)
        chunks = self._run // self.chunk
        found = []
        for round_ in range(0, len(self.rounds), chunks):
            _, first, outer = self._piece(round_)
            elements: list[Any] = [None] * self._run
            for begins in range(min(self.window, self._run)):
                steps = range(begins, self._run, self.window)
                sources = [
                    self.sources.at(begin, Sum(first.value, step), outer, (1, 1), True)
                    for step in steps
                ]
                loaded = self._where(sources, "memref.load", self.element, zero)
                for step, value in zip(steps, loaded, strict=True):
                    elements[step] = value
            found += elements
        return found

    def _value(self, source: Source, name: str, type_: Any) -> Any:
        """The elements at a place that exists."""
        code, load = self.code, self.operand.load
        elements = code.add(source.of_rows, source.of_steps)
        place = [self.scope.flat(load.buffer), code.plus(elements, source.plus)]
        return code.op(name, [type_], place, None, load.location).results[0]

    def _loaded(self, source: Source, name: str, type_: Any, zero: Any) -> Any:
        if self.operand.load.where:
            return self._where([source], name, type_, zero)[0]
        value = self._value(source, name, type_)
        if source.there is None:
            return value
        return self.code.value("arith.select", type_, source.there, value, zero)

    def _where(self, sources: list[Source], name: str, type_: Any, zero: Any) -> list[Any]:
        """Elements at places constants apart, or zeros where their common condition is false."""
        code, load, (first, *_) = self.code, self.operand.load, sources
        size = load.buffer.bytes_per_element
        nbytes = size * (type_.shape[0] if isinstance(type_, ir.VectorType) else 1)
        if first.there is not None and can_be_bounded(load.buffer, self.plan.bounded, nbytes):
            buffer = self.scope.bounded(self.operand)
            return [buffer.load(source, type_, load.location) for source in sources]
        return code.when(
            first.there,
            lambda: [self._value(source, name, type_) for source in sources],
            lambda: [zero] * len(sources),
            [type_] * len(sources),
        )
