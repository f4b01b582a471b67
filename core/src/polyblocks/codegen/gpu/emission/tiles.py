"""The elements of a thread in a block's tile: around the reduction, and in its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import product
from typing import Any

from polyblocks.affine.expr import Var
from polyblocks.affine.gpu.mapping.wide import is_wide
from polyblocks.affine.gpu.plans.groups import GroupPlan
from polyblocks.affine.gpu.plans.sizes import TileSizes
from polyblocks.affine.model import (
    AffineAccess,
    Buffer,
    Index,
    Load,
    Node,
    Op,
    Pure,
    Store,
    Value,
)
from polyblocks.codegen.gpu.emission.code import Code
from polyblocks.codegen.gpu.emission.nodes import NodeEmitter
from polyblocks.codegen.gpu.emission.wide_body import WideBody

#: Elements whose epilogue runs ahead of their sums at once, as far as it needs none.
_AT_ONCE = 16
#: A value's row and column in the thread's elements; -1 where it does not depend on one.
Key = tuple[Value, int, int]


class TileEmitter:
    """Writes what a thread does for all of its elements at the current insertion point.

    Args:
        code: of the kernel.
        sizes: of the tiles.
        memrefs: the memref of every buffer.
        externals: values that come from outside of the nest.

    Attributes:
        nodes: writes the nodes of one element.
        first: the first row and column of the block.
        found: the values of elements.
        row_of, column_of: the variables of each row, and column, of the thread.
    """

    def __init__(
        self,
        code: Code,
        sizes: TileSizes,
        memrefs: dict[Buffer, Any],
        externals: dict[Any, Any],
    ) -> None:
        self.code, self.sizes = code, sizes
        self.nodes = NodeEmitter(code, GroupPlan([], [], []), memrefs, externals, {})
        self.first: list[Any] = []
        self.found: dict[Key, Any] = {}
        self.row_of: list[dict[Var, Any]] = []
        self.column_of: list[dict[Var, Any]] = []
        self.together = (1, 1)
        #: Whether a value depends on the row, and on the column.
        self.levels: dict[Value, tuple[bool, bool]] = {}
        #: Whether each row, and each column, of the thread exists; None: it does.
        self.exist: list[list[Any]] = [[], []]
        #: Values of elements that the epilogue uses besides those before the reduction.
        self.handed: list[Value] = []

    def begin(self, block: Any, order: tuple[int, int] = (1, 1)) -> None:
        """Where the tile of a block begins.

        Args:
            block: its number.
            order: rows of tiles, a divisor of all of them, whose tiles follow each other; and
                columns of each of these, a divisor of all columns, that do.
        """
        code, sizes, parts = self.code, self.sizes, self.sizes.parts
        (height, width), (together, beside) = sizes.grid, order
        within = None
        if beside > 1:
            within, width = code.remainder(block, beside), width // beside
            block = code.quotient(block, beside)
        if together > 1:
            of_rows = code.quotient(block, together)
            rows, column = code.quotient(of_rows, width), code.remainder(of_rows, width)
            row = code.remainder(rows, height // together)
            row = code.add(code.times(row, together), code.remainder(block, together))
            at, batch = (row, column), code.quotient(rows, height // together)
        else:
            tile = code.quotient(block, width)
            at = (code.remainder(tile, height), code.remainder(block, width))
            batch = code.quotient(tile, height)
        if within is not None:
            at = at[0], code.add(code.times(at[1], beside), within)
        if parts.batch:
            self.nodes.decode(batch, parts.batch)
        self.first = [code.times(n, size) for n, size in zip(at, sizes.tile[:2], strict=True)]

    def place(self, places: tuple[list[Any], list[Any]], together: tuple[int, int]) -> list[Any]:
        """Place the thread's elements, and run what precedes the reduction.

        Args:
            places: rows and columns of the thread, as numbers in the block's tile.
            together: rows, and columns, of it that follow each other.

        Returns:
            The initial values of the reduction, element by element.
        """
        parts = self.sizes.parts
        self.together = together
        for side in range(2):
            self.stand(places[side], side)
        self.run(parts.before, self.found)
        starts = parts.reduction.loops[0].inits
        return [self.of(v, i, j) for i, j in self.elements() for v in starts]

    def stand(self, places: list[Any], side: int) -> None:
        """Find the variables of the thread's rows, or of its columns.

        Args:
            places: of them, as numbers in the block's tile.
            side: 0 for rows, 1 for columns.
        """
        code, variables = self.code, (self.row_of, self.column_of)[side]
        numbers = [code.add(self.first[side], place) for place in places]
        self.exist[side] = [self.inside(n, side) for n in numbers]
        chunk = self.together[side]
        exist = self.sizes.counts[side] % chunk == 0
        variables.clear()
        for i, number in enumerate(numbers):
            # Those that follow each other exist together.
            at = self.clamped(number, side, chunk - i % chunk if exist else 1)
            variables.append(self.values(at, side))

    def step(
        self, sums: list[Any], number: Any, read: Callable[[Node], bool] | None = None
    ) -> list[Any]:
        """One step of the reduction for all elements of the thread.

        Args:
            sums: carried values of all elements.
            number: of the step.
            read: as of :meth:`run`.
        """
        reduction = self.sizes.parts.reduction
        inner = reduction.loops[-1]
        self.nodes.decode(number, reduction.order)
        found = dict(self.found)
        rest = iter(sums)
        for i, j in self.elements():
            for argument in inner.arguments:
                found[argument, i, j] = next(rest)
        for argument in inner.arguments:
            self.levels[argument] = (True, True)
        self.run(inner.body, found, read)
        outer, self.found = self.found, found
        new = [self.of(v, i, j) for i, j in self.elements() for v in inner.yields]
        self.found = outer
        return new

    def elements(self) -> Iterator[tuple[int, int]]:
        """The row and the column of each element of the thread, as its numbers of them."""
        r, c = self.sizes.of_thread
        return ((i, j) for i in range(r) for j in range(c))

    def values(self, number: Any, side: int) -> dict[Var, Any]:
        """The variables of a row or a column."""
        order = (self.sizes.parts.rows, self.sizes.parts.columns)[side]
        self.nodes.decode(number, order)
        return {v: self.nodes.variables[v] for v in order}

    def clamped(self, number: Any, side: int, outer: int = 1) -> Any:
        """The first of ``outer`` rows or columns that exist; those beyond are not stored."""
        code, count, size = self.code, self.sizes.counts[side], self.sizes.tile[side]
        if count % size == 0:
            return number
        return code.value("arith.minui", code.index, number, code.integer(count - outer))

    def inside(self, number: Any, side: int) -> Any:
        """Whether a row or column exists; None if all of the tile do."""
        count, size = self.sizes.counts[side], self.sizes.tile[side]
        return (
            None
            if count % size == 0
            else self.code.compare("ult", number, self.code.integer(count))
        )

    def run(
        self,
        nodes: Iterable[Node],
        found: dict[Key, Any],
        read: Callable[[Node], bool] | None = None,
    ) -> None:
        """Run nodes as often as there are different results of them.

        Args:
            nodes: of the element.
            found: gets the results.
            read: reads a node's values where they have been copied to; whether it did.
        """
        outer, self.found = self.found, found
        for node in nodes:
            level = self._level(node)
            for result in node.defines:
                self.levels[result] = level
            if read is not None and read(node):
                continue
            self._of_rows(node, range(self.sizes.of_thread[0]))
        self.found = outer

    def _of_rows(self, node: Node, rows: range) -> None:
        """Run a node as often as there are different results of it in some of the rows."""
        (of_row, of_column), columns = self._level(node), range(self.sizes.of_thread[1])
        for i in rows if of_row else (-1,):
            for j in columns if of_column else (-1,):
                for result, value in zip(node.defines, self._once(node, i, j), strict=True):
                    self.found[result, i, j] = value

    def _level(self, node: Node) -> tuple[bool, bool]:
        """Whether what a node computes depends on the row, and on the column."""
        parts = self.sizes.parts
        levels = [self.levels.get(v, (False, False)) for v in node.uses]
        if isinstance(node, (Index, Load)):
            variables = set(node.variables())
            levels.append((bool(variables & set(parts.rows)), bool(variables & set(parts.columns))))
        return any(a for a, _ in levels), any(b for _, b in levels)

    def of(self, value: Value, i: int, j: int) -> Any:
        """The value of an element."""
        if value.external is not None:
            return self.nodes.externals[value.external]
        row, column = self.levels.get(value, (False, False))
        return self.found[value, i if row else -1, j if column else -1]

    def _once(self, node: Node, i: int, j: int) -> list[Any]:
        code = self.code
        if isinstance(node, Op):
            given = [self.of(v, i, j) for v in node.operands]
            types = [r.type for r in node.results]
            return list(code.op(node.name, types, given, node.attributes, node.location).results)
        self.move(i, j)
        if isinstance(node, Index):
            return [self.nodes.expr(node.expr)]
        assert isinstance(node, Load)
        place = [self.nodes.expr(e) for e in node.index]
        self.nodes.load(node, [self.nodes.memrefs[node.buffer], *place])
        return [self.nodes.values[node.result]]

    def move(self, i: int, j: int) -> None:
        """Let the outer variables be those of an element."""
        if i >= 0:
            self.nodes.variables.update(self.row_of[i])
        if j >= 0:
            self.nodes.variables.update(self.column_of[j])

    def finish(self, carried: list[Any]) -> None:
        """The epilogue of every element, several neighbouring columns at a time.

        Args:
            carried: what the reduction results in, element by element.
        """
        each = len(self.sizes.parts.reduction.loops[0].results)
        sums = [carried[n : n + each] for n in range(0, len(carried), each)]
        rows, columns = self.sizes.of_thread
        width = self._columns_at_once()
        ahead = self._ahead() if self.sizes.ragged else []
        nodes = [n for n in self.sizes.parts.after if n not in ahead]
        self.handed += [v for node in ahead for v in node.defines]
        some = max(1, _AT_ONCE // columns)
        for i, j in product(range(rows), range(0, columns, width)):
            if i % some == j == 0:
                for node in ahead:
                    self._of_rows(node, range(i, min(i + some, rows)))
            self.move(i, j)
            conditions = [c for c in (self.exist[0][i], self.exist[1][j]) if c is not None]
            of_columns = sums[i * columns + j : i * columns + j + width]
            finish = self._finish_one if width == 1 else self._finish_columns
            self.code.when(self.code.both(conditions), partial(finish, nodes, i, j, of_columns))

    def _ahead(self) -> list[Node]:
        """Nodes of the epilogue that use no sum, and may run for elements that do not exist.

        These read what the last one reads. Under the conditions of an element they would run for
        each one, and its loads after what the element before it does.
        """
        parts = self.sizes.parts
        written = {n.buffer.base for n in (*parts.before, *parts.after) if isinstance(n, Store)}
        later = set(parts.reduction.loops[0].results)
        found: list[Node] = []
        for node in parts.after:
            is_load = isinstance(node, Load) and not node.where and node.buffer.base not in written
            if not (is_load or isinstance(node, Pure)) or later.intersection(node.uses):
                later.update(node.defines)
                continue
            found.append(node)
            level = self._level(node)
            self.levels.update(dict.fromkeys(node.defines, level))
        return found

    def _known(self) -> list[Value]:
        """Values that the epilogue may use."""
        return [*(v for node in self.sizes.parts.before for v in node.defines), *self.handed]

    def known_of(self, i: int, j: int, width: int) -> dict[Value, list[Any]]:
        """These, of a row and of neighbouring columns from one on; one if they are the same."""
        found = {}
        for value in self._known():
            _, moves = self.levels[value]
            found[value] = [self.of(value, i, j + k) for k in range(width if moves else 1)]
        return found

    def _columns_at_once(self) -> int:
        """Neighbouring columns that exist together or not, and whose results are stored at once."""
        parts, width = self.sizes.parts, self.together[1]
        last = parts.columns[-1]
        nodes = (*parts.before, *parts.after)
        alike = last.extent % width == 0 and all(isinstance(n, (Pure, AffineAccess)) for n in nodes)
        stores = [n for n in nodes if isinstance(n, Store)]
        return width if alike and any(is_wide(n, last) for n in stores) else 1

    def _finish_one(self, nodes: list[Node], i: int, j: int, sums: list[list[Any]]) -> list[Any]:
        parts = self.sizes.parts
        for value in self._known():
            self.nodes.values[value] = self.of(value, i, j)
        self.nodes.values.update(zip(parts.reduction.loops[0].results, sums[0], strict=True))
        self.nodes.run(nodes, False, [])
        return []

    def _finish_columns(
        self, nodes: list[Node], i: int, j: int, sums: list[list[Any]]
    ) -> list[Any]:
        parts, width = self.sizes.parts, len(sums)
        body = WideBody(self.nodes, parts.columns[-1], width)
        body.values.update(self.known_of(i, j, width))
        for result, values in zip(
            parts.reduction.loops[0].results, zip(*sums, strict=True), strict=True
        ):
            body.values[result] = list(values)
        body.nodes(nodes)
        return []
