"""The body of a kernel whose blocks compute tiles of a contraction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from polyblocks.affine.analysis.contractions import Operand
from polyblocks.affine.expr import Var
from polyblocks.affine.model import Load, Node, Op, Value, operands, results
from polyblocks.codegen.gpu.emission.combine import barrier
from polyblocks.codegen.gpu.emission.emit import Emitter
from polyblocks.codegen.gpu.mapping.contraction import TiledKernel
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
            variables.extend(self._values(self._clamped(n, side), side) for n in numbers)
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
        for side, (member, step) in enumerate(zip(members, (rows, columns), strict=True)):
            self.places[side].extend(
                code.add(member, code.integer(i * step)) if i else member
                for i in range(self.kernel.of_thread[side])
            )

    def _elements(self) -> Iterator[tuple[int, int]]:
        r, c = self.kernel.of_thread
        return ((i, j) for i in range(r) for j in range(c))

    def _values(self, number: Any, side: int) -> dict[Var, Any]:
        """The variables of a row or a column."""
        order = (self.kernel.parts.rows, self.kernel.parts.columns)[side]
        self._decode(number, order)
        return {v: self.variables[v] for v in order}

    def _clamped(self, number: Any, side: int) -> Any:
        """The number of a row or column that exists; what is beyond the end is not stored."""
        count, size = self.kernel.counts[side], self.kernel.tile[side]
        if count % size == 0:
            return number
        return self.code.value("arith.minui", self.code.index, number, self.code.integer(count - 1))

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
        tiles = -(-steps // depth)
        ahead = self._loaded(thread, code.integer(0))
        types = [v.type for v in ahead]

        def tile(number: Any, inside: list[Any]) -> list[Any]:
            sums, loaded = inside[: len(inits)], inside[len(inits) :]
            barrier(code)
            self._store_tiles(thread, loaded)
            barrier(code)
            following = code.add(number, code.integer(1))
            more = code.compare("ult", following, code.integer(tiles))
            # What the next step needs is under way while this one computes.
            after = code.when(
                more,
                lambda: self._loaded(thread, code.times(following, depth)),
                lambda: loaded,
                types,
            )
            return [*self._compute(code.times(number, depth), sums), *after]

        found = code.loop(
            code.integer(0), code.integer(tiles), code.integer(1), [*inits, *ahead], tile
        )
        return found[: len(inits)]

    def _copy_rounds(self, operand: Operand) -> range:
        """The rounds in which the threads copy a tile."""
        return range(-(-self._elements_of(operand) // self.kernel.threads))

    def _elements_of(self, operand: Operand) -> int:
        return self.kernel.depth * self.kernel.tile[0 if operand.of_rows else 1]

    def _piece(self, operand: Operand, thread: Any, round_: int) -> tuple[Any, Any, Any]:
        """Whether a thread has an element of a tile in some round, its step and its place."""
        code, kernel = self.code, self.kernel
        elements = self._elements_of(operand)
        number, mine = code.round_of(thread, round_, elements, kernel.threads)
        if operand.steps_first:
            return mine, code.remainder(number, kernel.depth), code.quotient(number, kernel.depth)
        length = elements // kernel.depth
        return mine, code.quotient(number, length), code.remainder(number, length)

    def _loaded(self, thread: Any, begin: Any) -> list[Any]:
        """The elements of all operands that a thread copies, from a step on."""
        code, kernel = self.code, self.kernel
        found = []
        steps = kernel.counts[2]
        for operand in kernel.parts.operands:
            load, side = operand.load, 0 if operand.of_rows else 1
            for round_ in self._copy_rounds(operand):
                mine, step, place = self._piece(operand, thread, round_)

                def element(
                    step: Any = step, place: Any = place, load: Load = load, side: int = side
                ) -> list[Any]:
                    number = code.add(begin, step)
                    if steps % kernel.depth:
                        number = code.value(
                            "arith.minui", code.index, number, code.integer(steps - 1)
                        )
                    self._decode(number, kernel.parts.reduction.order)
                    at = self._clamped(code.add(self.first[side], place), side)
                    self.variables.update(self._values(at, side))
                    index = [self.expr(e) for e in load.index]
                    self._load(load, [self.memrefs[load.buffer], *index])
                    return [self.values[load.result]]

                type_ = load.result.type
                found += code.when(mine, element, partial(self._nothing, type_), [type_])
        return found

    def _nothing(self, type_: Any) -> list[Any]:
        """What a thread has that copies nothing in a round."""
        return [self._zero(type_)]

    def _store_tiles(self, thread: Any, loaded: list[Any]) -> None:
        rest = iter(loaded)
        for operand in self.kernel.parts.operands:
            for round_ in self._copy_rounds(operand):
                mine, step, place = self._piece(operand, thread, round_)
                value = next(rest)

                def store(
                    value: Any = value, operand: Operand = operand, step: Any = step,
                    place: Any = place,
                ) -> list[Any]:  # fmt: skip
                    self.code.op("memref.store", [], [value, self.tiles[operand], step, place])
                    return []

                self.code.when(mine, store)

    def _compute(self, begin: Any, sums: list[Any]) -> list[Any]:
        """The steps whose operands are in shared memory."""
        code, kernel = self.code, self.kernel
        steps, depth = kernel.counts[2], kernel.depth
        body = kernel.parts.reduction.body
        operations = depth * len(body) * len(list(self._elements()))
        if steps % depth == 0 and operations <= _UNROLLED:
            for step in range(depth):
                sums = self._step(begin, code.integer(step), sums)
            return sums
        end: Any = code.integer(depth)
        if steps % depth:
            rest = code.value("arith.subi", code.index, code.integer(steps), begin)
            end = code.value("arith.minui", code.index, end, rest)
        return code.loop(
            code.integer(0), end, code.integer(1), sums, lambda k, s: self._step(begin, k, s)
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
            for result in results(node):
                self.level[result] = level
            r, c = self.kernel.of_thread
            for i in range(r) if level[0] else (-1,):
                for j in range(c) if level[1] else (-1,):
                    for result, value in zip(
                        results(node), self._once(node, i, j, step), strict=True
                    ):
                        found[result, i, j] = value
        self.found = outer

    def _level(self, node: Node) -> tuple[bool, bool]:
        """Whether what a node computes depends on the row, and on the column."""
        parts = self.kernel.parts
        levels = [self.level.get(v, (False, False)) for v in operands(node)]
        if isinstance(node, Load):
            variables = {v for e in node.index for v in e.variables()}
            levels.append((bool(variables & set(parts.rows)), bool(variables & set(parts.columns))))
        return any(a for a, _ in levels), any(b for _, b in levels)

    def _of(self, value: Value, i: int, j: int) -> Any:
        if value.external is not None:
            return self.externals[value.external]
        row, column = self.level.get(value, (False, False))
        return self.found[value, i if row else -1, j if column else -1]

    def _once(self, node: Node, i: int, j: int, step: Any) -> list[Any]:
        code = self.code
        if isinstance(node, Op):
            given = [self._of(v, i, j) for v in node.operands]
            types = [r.type for r in node.results]
            return list(code.op(node.name, types, given, node.attributes, node.location).results)
        assert isinstance(node, Load)
        operand = None if step is None else self.kernel.parts.operand(node)
        if operand is not None:
            place = self.places[0][i] if operand.of_rows else self.places[1][j]
            given = [self.tiles[operand], step, place]
            return list(
                code.op("memref.load", [node.result.type], given, None, node.location).results
            )
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
        """What happens with the sums of every element."""
        parts = self.kernel.parts
        rest = iter(carried)
        for i, j in self._elements():
            self._move(i, j)
            for node in parts.before:
                for value in results(node):
                    self.values[value] = self._of(value, i, j)
            for result in parts.reduction.loops[0].results:
                self.values[result] = next(rest)
            conditions = [c for c in (inside[0][i], inside[1][j]) if c is not None]

            def finish() -> list[Any]:
                self.nodes(parts.after, False, [])
                return []

            self.code.when(self.code.both(conditions), finish)


def tile_types(kernel: TiledKernel, space: Any) -> list[Any]:
    """Types of the operands' tiles, in their order."""
    return [
        ir.MemRefType.get(list(kernel.shape(o)), kernel.element_of(o), memory_space=space)
        for o in kernel.parts.operands
    ]
