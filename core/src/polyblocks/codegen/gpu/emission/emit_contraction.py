"""The body of a kernel whose blocks compute tiles of a contraction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import product
from math import prod
from typing import Any

from polyblocks.affine.access import address
from polyblocks.affine.analysis.contractions import Operand
from polyblocks.affine.element import zero_of
from polyblocks.affine.expr import Var
from polyblocks.affine.model import AffineAccess, Index, Load, Node, Op, Store, Value
from polyblocks.codegen.gpu.emission.combine import barrier
from polyblocks.codegen.gpu.emission.emit import Emitter
from polyblocks.codegen.gpu.emission.wide_body import WideBody
from polyblocks.codegen.gpu.mapping.contraction import TiledKernel
from polyblocks.codegen.gpu.mapping.wide import is_wide
from polyblocks.mlir import ir

#: Operations up to which the steps whose operands are copied at once are written out.
_UNROLLED = 4096
#: A value's row and column in the thread's elements; -1 where it does not depend on one.
_Key = tuple[Value, int, int]


class ContractionEmitter(Emitter):
    """Writes a tiled kernel's body at the current insertion point.

    Attributes:
        tiles: shared memory of every operand.
    """

    kernel: TiledKernel

    def __init__(self, *given: Any, tiles: dict[Operand, Any]) -> None:
        super().__init__(*given)
        self.tiles = tiles
        self.found: dict[_Key, Any] = {}
        self.level: dict[Value, tuple[bool, bool]] = {}
        self.row_of: list[dict[Var, Any]] = []
        self.column_of: list[dict[Var, Any]] = []
        self.first: list[Any] = []
        self.places: tuple[list[Any], list[Any]] = ([], [])
        #: Rows, and columns, of a thread that follow each other.
        self.together = [1, 1]

    def emit(self) -> None:
        """The whole body, without the terminator."""
        code, kernel, parts = self.code, self.kernel, self.kernel.parts
        thread, block = code.id("thread"), code.id("block")
        height, width = kernel.grid
        tile = code.quotient(block, width)
        at = (code.remainder(tile, height), code.remainder(block, width))
        if parts.batch:
            self._decode(code.quotient(tile, height), parts.batch)
        self.first = [code.times(n, size) for n, size in zip(at, kernel.tile[:2], strict=True)]
        self._place_elements(thread)
        inside: list[list[Any]] = []
        for side in range(2):
            variables = (self.row_of, self.column_of)[side]
            numbers = [code.add(self.first[side], place) for place in self.places[side]]
            inside.append([self._inside(n, side) for n in numbers])
            chunk = self.together[side]
            exist = kernel.counts[side] % chunk == 0
            for i, number in enumerate(numbers):
                # Those that follow each other exist together.
                at = self._clamped(number, side, chunk - i % chunk if exist else 1)
                variables.append(self._values(at, side))
        self._run(parts.before, self.found)
        inits = [
            self._of(v, i, j) for i, j in self._elements() for v in parts.reduction.loops[0].inits
        ]
        carried = self._steps(thread, inits)
        self._finish(carried, inside)

    def _place_elements(self, thread: Any) -> None:
        """The rows and columns of a thread's elements, as numbers in the block's tile."""
        code, (rows, columns) = self.code, self.kernel.across
        members = (code.quotient(thread, columns), code.remainder(thread, columns))
        for side, (member, count) in enumerate(zip(members, (rows, columns), strict=True)):
            chunk = self.kernel.chunk(side)
            first = code.times(member, chunk)
            self.places[side].extend(
                code.plus(first, i // chunk * chunk * count + i % chunk)
                for i in range(self.kernel.of_thread[side])
            )
            self.together[side] = chunk

    def _elements(self) -> Iterator[tuple[int, int]]:
        r, c = self.kernel.of_thread
        return ((i, j) for i in range(r) for j in range(c))

    def _values(self, number: Any, side: int) -> dict[Var, Any]:
        """The variables of a row or a column."""
        order = (self.kernel.parts.rows, self.kernel.parts.columns)[side]
        self._decode(number, order)
        return {v: self.variables[v] for v in order}

    def _clamped(self, number: Any, side: int, outer: int = 1) -> Any:
        """The first of ``outer`` rows or columns that exist; those beyond are not stored."""
        code, count, size = self.code, self.kernel.counts[side], self.kernel.tile[side]
        if count % size == 0:
            return number
        return code.value("arith.minui", code.index, number, code.integer(count - outer))

    def _inside(self, number: Any, side: int) -> Any:
        count, size = self.kernel.counts[side], self.kernel.tile[side]
        return (
            None
            if count % size == 0
            else self.code.compare("ult", number, self.code.integer(count))
        )

    # Steps of the reduction

    def _steps(self, thread: Any, inits: list[Any]) -> list[Any]:
        """All steps: copies, and what threads add to their elements."""
        code, kernel = self.code, self.kernel
        steps, depth = kernel.counts[2], kernel.depth
        tiles, rest = divmod(steps, depth)
        ahead = self._loaded(thread, code.integer(0), True)
        types = [v.type for v in ahead]

        def exchange(loaded: list[Any]) -> None:
            barrier(code)
            self._store_tiles(thread, loaded)
            barrier(code)

        def tile(number: Any, inside: list[Any]) -> list[Any]:
            sums, loaded = inside[: len(inits)], inside[len(inits) :]
            exchange(loaded)
            following = code.add(number, code.integer(1))
            more = code.compare("ult", following, code.integer(tiles))
            # Loads of the next step overlap the computation of this one.
            after = code.when(
                more,
                lambda: self._loaded(thread, code.times(following, depth), True),
                lambda: loaded,
                types,
            )
            return [*self._compute(code.times(number, depth), depth, sums), *after]

        found = code.loop(
            code.integer(0), code.integer(tiles), code.integer(1), [*inits, *ahead], tile
        )
        sums = found[: len(inits)]
        if rest:
            begin = code.integer(tiles * depth)
            exchange(self._loaded(thread, begin, False))
            sums = self._compute(begin, rest, sums)
        return sums

    def _pieces(self, operand: Operand) -> int:
        """Pieces of an operand's tile that the threads copy."""
        steps, outer = self.kernel.copied_at_once(operand)
        return self.kernel.depth * self._length(operand) // (steps * outer)

    def _length(self, operand: Operand) -> int:
        """Rows, or columns, of an operand's tile."""
        return self.kernel.tile[operand.side]

    def _copy_rounds(self, operand: Operand) -> range:
        """The rounds in which the threads copy a tile."""
        return range(-(-self._pieces(operand) // self.kernel.threads))

    def _piece(self, operand: Operand, thread: Any, round_: int) -> tuple[Any, Any, Any]:
        """Whether a thread has a piece of a tile in some round, its first step and its place."""
        code, kernel = self.code, self.kernel
        number, mine = code.round_of(thread, round_, self._pieces(operand), kernel.threads)
        steps, outer = kernel.copied_at_once(operand)
        length = self._length(operand) // outer
        beside = kernel.copied_beside(operand)
        rest = code.quotient(number, beside)
        step = code.remainder(number, beside)
        if beside * steps < kernel.depth:
            step = code.add(step, code.times(code.quotient(rest, length), beside))
            rest = code.remainder(rest, length)
        return mine, code.times(step, steps), code.times(rest, outer)

    def _loaded(self, thread: Any, begin: Any, whole: bool) -> list[Any]:
        """A thread's loads of all operands from a step on; ``whole``: all steps exist."""
        code, kernel = self.code, self.kernel
        found = []
        for operand in kernel.parts.operands:
            size = prod(kernel.copied_at_once(operand))
            type_ = self._type_of_piece(operand)
            for round_ in self._copy_rounds(operand):
                mine, step, place = self._piece(operand, thread, round_)
                find = partial(self._source, operand, begin, step, place, whole, size)
                found += code.when(mine, find, partial(self._nothing, type_), [type_])
        return found

    def _type_of_piece(self, operand: Operand) -> Any:
        size, element = prod(self.kernel.copied_at_once(operand)), operand.load.result.type
        return element if size == 1 else ir.VectorType.get([size], element)

    def _source(
        self, operand: Operand, begin: Any, step: Any, place: Any, whole: bool, size: int
    ) -> list[Any]:
        """A piece from memory."""
        code, kernel, load = self.code, self.kernel, operand.load
        side = operand.side
        steps, outer = kernel.copied_at_once(operand)
        number = code.add(begin, step)
        if not whole:
            last = code.integer(kernel.counts[2] - steps)
            number = code.value("arith.minui", code.index, number, last)
        self._decode(number, kernel.parts.reduction.order)
        at = self._clamped(code.add(self.first[side], place), side, outer)
        self.variables.update(self._values(at, side))
        if size == 1:
            self._load(load, [self.memrefs[load.buffer], *map(self.expr, load.index)])
            return [self.values[load.result]]
        row = self._row(self.memrefs[load.buffer])
        index = self.expr(address(load.buffer, load.index))
        type_ = self._type_of_piece(operand)
        return list(code.op("vector.load", [type_], [row, index], None, load.location).results)

    def _nothing(self, type_: Any) -> list[Any]:
        """The values of a thread that copies nothing in a round."""
        if not isinstance(type_, ir.VectorType):
            return [self._zero(type_)]
        zero = zero_of(type_.element_type)
        return [self.code.constant(ir.DenseElementsAttr.get_splat(type_, zero))]

    def _store_tiles(self, thread: Any, loaded: list[Any]) -> None:
        rest = iter(loaded)
        for operand in self.kernel.parts.operands:
            for round_ in self._copy_rounds(operand):
                mine, step, place = self._piece(operand, thread, round_)
                store = partial(self._put, operand, next(rest), step, place)
                self.code.when(mine, store)

    def _put(self, operand: Operand, value: Any, step: Any, place: Any) -> list[Any]:
        """A piece in the tile: rows (or columns) at once, steps one by one."""
        code, tile = self.code, self.tiles[operand]
        steps, outer = self.kernel.copied_at_once(operand)
        if outer > 1:
            code.op("vector.store", [], [value, tile, step, place])
            return []
        group = code.quotient(step, steps)
        for k, element in enumerate(code.elements(value) if steps > 1 else [value]):
            at = code.plus(place, k * self._length(operand))
            code.op("memref.store", [], [element, tile, group, at])
        return []

    def _compute(self, begin: Any, count: int, sums: list[Any]) -> list[Any]:
        """So many steps whose operands are in shared memory."""
        code, body = self.code, self.kernel.parts.reduction.body
        operations = count * len(body) * len(list(self._elements()))
        if operations <= _UNROLLED:
            for step in range(count):
                sums = self._step(begin, code.integer(step), sums)
            return sums
        return code.loop(
            code.integer(0),
            code.integer(count),
            code.integer(1),
            sums,
            lambda k, s: self._step(begin, k, s),
        )

    def _step(self, begin: Any, step: Any, sums: list[Any]) -> list[Any]:
        """One step for all elements of a thread."""
        reduction = self.kernel.parts.reduction
        inner = reduction.loops[-1]
        self._decode(self.code.add(begin, step), reduction.order)
        found = dict(self.found)
        rest = iter(sums)
        for i, j in self._elements():
            for argument in inner.arguments:
                found[argument, i, j] = next(rest)
        for argument in inner.arguments:
            self.level[argument] = (True, True)
        self._run(inner.body, found, step)
        outer, self.found = self.found, found
        new = [self._of(v, i, j) for i, j in self._elements() for v in inner.yields]
        self.found = outer
        return new

    # Values of several elements

    def _run(self, nodes: Iterable[Node], found: dict[_Key, Any], step: Any = None) -> None:
        """Run nodes as often as there are different results of them."""
        outer, self.found = self.found, found
        for node in nodes:
            level = self._level(node)
            for result in node.defines:
                self.level[result] = level
            operand = None if step is None else self._operand(node)
            if operand is not None:
                self._read(node, operand, step)
                continue
            r, c = self.kernel.of_thread
            for i in range(r) if level[0] else (-1,):
                for j in range(c) if level[1] else (-1,):
                    for result, value in zip(node.defines, self._once(node, i, j), strict=True):
                        found[result, i, j] = value
        self.found = outer

    def _operand(self, node: Node) -> Operand | None:
        return self.kernel.parts.operand(node) if isinstance(node, Load) else None

    def _read(self, node: Node, operand: Operand, step: Any) -> None:
        """Load a thread's part of an operand's tile for a step, a chunk with each access."""
        code, tile = self.code, self.tiles[operand]
        assert isinstance(node, Load)
        side = operand.side
        chunk, type_ = self.kernel.chunk(side), node.result.type
        steps, _ = self.kernel.copied_at_once(operand)
        group = code.quotient(step, steps)
        inside = code.times(code.remainder(step, steps), self._length(operand))
        name = "memref.load" if chunk == 1 else "vector.load"
        read = type_ if chunk == 1 else ir.VectorType.get([chunk], type_)
        for i in range(0, self.kernel.of_thread[side], chunk):
            place = [tile, group, code.add(inside, self.places[side][i])]
            (value,) = code.op(name, [read], place, None, node.location).results
            for k, element in enumerate([value] if chunk == 1 else code.elements(value)):
                key = (i + k, -1) if operand.of_rows else (-1, i + k)
                self.found[(node.result, *key)] = element

    def _level(self, node: Node) -> tuple[bool, bool]:
        """Whether what a node computes depends on the row, and on the column."""
        parts = self.kernel.parts
        levels = [self.level.get(v, (False, False)) for v in node.uses]
        if isinstance(node, Load):
            variables = {v for e in node.index for v in e.variables()}
            levels.append((bool(variables & set(parts.rows)), bool(variables & set(parts.columns))))
        return any(a for a, _ in levels), any(b for _, b in levels)

    def _of(self, value: Value, i: int, j: int) -> Any:
        if value.external is not None:
            return self.externals[value.external]
        row, column = self.level.get(value, (False, False))
        return self.found[value, i if row else -1, j if column else -1]

    def _once(self, node: Node, i: int, j: int) -> list[Any]:
        code = self.code
        if isinstance(node, Op):
            given = [self._of(v, i, j) for v in node.operands]
            types = [r.type for r in node.results]
            return list(code.op(node.name, types, given, node.attributes, node.location).results)
        assert isinstance(node, Load)
        self._move(i, j)
        self._load(node, [self.memrefs[node.buffer], *(self.expr(e) for e in node.index)])
        return [self.values[node.result]]

    def _move(self, i: int, j: int) -> None:
        """Let the outer variables be those of an element."""
        if i >= 0:
            self.variables.update(self.row_of[i])
        if j >= 0:
            self.variables.update(self.column_of[j])

    def _finish(self, carried: list[Any], inside: list[list[Any]]) -> None:
        """The epilogue of every element, several neighbouring columns at a time."""
        each = len(self.kernel.parts.reduction.loops[0].results)
        sums = [carried[n : n + each] for n in range(0, len(carried), each)]
        rows, columns = self.kernel.of_thread
        width = self._columns_at_once()
        for i, j in product(range(rows), range(0, columns, width)):
            self._move(i, j)
            conditions = [c for c in (inside[0][i], inside[1][j]) if c is not None]
            of_columns = sums[i * columns + j : i * columns + j + width]
            finish = self._finish_one if width == 1 else self._finish_columns
            self.code.when(self.code.both(conditions), partial(finish, i, j, of_columns))

    def _columns_at_once(self) -> int:
        """Neighbouring columns that exist together or not, and whose results are stored at once."""
        parts, width = self.kernel.parts, self.together[1]
        last = parts.columns[-1]
        nodes = (*parts.before, *parts.after)
        alike = last.extent % width == 0 and all(
            isinstance(n, (Op, Index, AffineAccess)) for n in nodes
        )
        stores = [n for n in nodes if isinstance(n, Store)]
        return width if alike and any(is_wide(n, last) for n in stores) else 1

    def _finish_one(self, i: int, j: int, sums: list[list[Any]]) -> list[Any]:
        parts = self.kernel.parts
        for node in parts.before:
            for value in node.defines:
                self.values[value] = self._of(value, i, j)
        self.values.update(zip(parts.reduction.loops[0].results, sums[0], strict=True))
        self.nodes(parts.after, False, [])
        return []

    def _finish_columns(self, i: int, j: int, sums: list[list[Any]]) -> list[Any]:
        parts, width = self.kernel.parts, len(sums)
        body = WideBody(self, parts.columns[-1], width)
        for node in parts.before:
            for value in node.defines:
                _, moves = self.level[value]
                body.values[value] = [
                    self._of(value, i, j + k) for k in range(width if moves else 1)
                ]
        for result, values in zip(
            parts.reduction.loops[0].results, zip(*sums, strict=True), strict=True
        ):
            body.values[result] = list(values)
        body.nodes(parts.after)
        return []


def tile_types(kernel: TiledKernel, space: Any) -> list[Any]:
    """Types of the operands' tiles, in their order."""
    return [
        ir.MemRefType.get(list(kernel.shape(o)), kernel.element_of(o), memory_space=space)
        for o in kernel.parts.operands
    ]
