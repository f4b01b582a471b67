"""The body of a kernel whose warps compute chains of products by a matrix unit.

A warp has some rows. Its lanes keep their elements of a block of steps in registers: sums of the
first products, what is computed of these, and operands of the second one.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

from polyblocks.affine.analysis.reduction_chains import StraightLineCode
from polyblocks.affine.analysis.reductions import identity
from polyblocks.affine.gpu.plans.chained import is_at_border
from polyblocks.affine.gpu.plans.chains import ChainPlan
from polyblocks.affine.gpu.plans.fragments import steps_of
from polyblocks.affine.model import Buffer, For, Load, Node, Op, Store, Value
from polyblocks.affine.vectors.reduction_vectors import combine
from polyblocks.codegen.gpu.emission.code import Code
from polyblocks.codegen.gpu.emission.combine import from_lane
from polyblocks.codegen.gpu.emission.tiles import TileEmitter
from polyblocks.codegen.gpu.matrix_emission.chains.borders import Borders, Grid
from polyblocks.codegen.gpu.matrix_emission.chains.copies import (
    ChainCopies,
    chain_copies,
)
from polyblocks.codegen.gpu.matrix_emission.chains.passed_operand import PassedOperand
from polyblocks.codegen.gpu.matrix_emission.chains.products import ChainProduct, WarpProduct
from polyblocks.mlir import ir


class ChainEmitter:
    """Writes such a body at the current insertion point.

    Args:
        code: of the kernel.
        plan: of the chain.
        memrefs: of buffers of the program.
        externals: values that come from around the nest.
        shared: memory of two operands of each first product, and of one of the last.

    Attributes:
        product: makes what computes one of the products.
    """

    product: ClassVar[type[ChainProduct]] = WarpProduct

    def __init__(
        self,
        code: Code,
        plan: ChainPlan,
        memrefs: dict[Buffer, Any],
        externals: dict[Any, Any],
        shared: list[Any],
    ) -> None:
        self.code, self.plan, self.parts = code, plan, plan.parts
        *pairs, columns = shared

        def tile(sizes: Any) -> TileEmitter:
            return TileEmitter(code, sizes, memrefs, externals)

        self.firsts = [
            self.product(tile(first.sizes), first, pairs[2 * n : 2 * n + 2])
            for n, first in enumerate(plan.firsts)
        ]
        self.first = self.firsts[0]
        self.second = self.product(tile(plan.second.sizes), plan.second, [None, columns])
        self.last = tile(plan.last_sizes())
        # All know the numbers of a row.
        for other in (*(p.tile for p in self.firsts[1:]), self.second.tile, self.last):
            other.found, other.levels = self.first.tile.found, self.first.tile.levels
        self.passed: dict[Buffer, Grid] = {}
        self.borders = Borders(code, plan, self.first)
        self.stage: Any = None

    def emit(self) -> None:
        """The whole body, without the terminator."""
        thread = self._begin()
        for product in self.products:
            product.place(thread)
        self._compute(self._copies(thread))

    @property
    def products(self) -> tuple[ChainProduct, ...]:
        """All of them."""
        return *self.firsts, self.second

    def _copies(self, thread: Any) -> ChainCopies:
        products = [p for p in self.products if isinstance(p, WarpProduct)]
        return chain_copies(self.code, self.plan, products, thread)

    def _begin(self) -> Any:
        """Find the tile of the block; the thread's number."""
        code, tile = self.code, self.second.tile
        thread, block = code.id("thread"), code.id("block")
        tile.begin(block)
        for product in self.firsts:
            product.tile.first = [tile.first[0], code.integer(0)]
            product.tile.nodes.variables.update(tile.nodes.variables)
        return thread

    def _compute(self, copies: ChainCopies) -> None:
        """Write the code of the threads that multiply."""
        plan, tile = self.plan, self.second.tile
        copies.begin()
        if plan.holds_rows:
            copies.rows_arrive()
            for product in self.firsts:
                product.hold_rows()
        self._run(self.parts.before)
        blocks, sums = self.parts.blocks, self.second.sums
        r, c = plan.second.sizes.of_thread
        zero = tile.nodes.zero(ir.F32Type.get())
        inits = [v for value in blocks.inits for v in self._rows(value)]
        inits += sums.packed([zero] * (r * c))
        count = len(blocks.inits) * r
        done = self._blocks(copies, inits)
        for position, result in enumerate(blocks.results):
            self._set_rows(result, done[position * r : (position + 1) * r])
        for node in self.parts.after:
            if isinstance(node, Store):
                self._store_numbers(node)
            else:
                self._run([node])
        self._finish(sums.unpacked(done[count:]))

    def _blocks(self, copies: ChainCopies, inits: list[Any]) -> list[Any]:
        """Rows' numbers and sums after all blocks of steps; ``inits`` before them."""
        done = inits + copies.carried
        for part in self.borders.parts(copies.first, copies.end):
            body = partial(self._carried, copies, len(inits), part.masks)
            done = self.code.loop(part.first, part.end, self.code.integer(1), done, body, kept=True)
        return done[: len(inits)]

    def _carried(
        self, copies: ChainCopies, end: int, masks: bool, number: Any, carried: list[Any]
    ) -> list[Any]:
        """A block of steps, and the values behind it; rows' numbers and sums end at ``end``."""
        blocks, sums, r = self.parts.blocks, self.second.sums, self._height
        for position, argument in enumerate(blocks.arguments):
            self._set_rows(argument, carried[position * r : (position + 1) * r])
        copies.carried, count = carried[end:], len(blocks.arguments) * r
        totals = self._block(number, copies, sums.unpacked(carried[count:end]), masks)
        rows = [v for value in blocks.yields for v in self._rows(value)]
        return [*rows, *sums.packed(totals), *copies.carried]

    def _block(self, number: Any, copies: ChainCopies, totals: list[Any], masks: bool) -> list[Any]:
        """A block of steps; the totals after it. It may be at the border of masks, or is not."""
        code, tile = self.code, self.first.tile
        self.stage = copies.turn(number)
        tile.first = [tile.first[0], code.times(number, self.plan.parts.block)]
        tile.stand(self.first.places[1], 1)
        for statement in self.parts.statements:
            if statement is self.parts.used:
                totals = self._use(totals, copies)
            elif not isinstance(statement, For):
                self._run([statement])
            elif statement.inits:
                self._reduce(statement)
            elif is_at_border(statement):
                if masks:
                    self.borders.mask(statement, self.passed)
            else:
                self._elements(statement)
            if statement is self.parts.made[-1]:
                copies.between(number)
        return totals

    # Numbers of rows

    def _rows(self, value: Value) -> list[Any]:
        return [self.first.tile.of(value, i, -1) for i in range(self._height)]

    def _set_rows(self, value: Value, numbers: list[Any]) -> None:
        tile = self.first.tile
        tile.levels[value] = (True, False)
        for i, number in enumerate(numbers):
            tile.found[value, i, -1] = number

    @property
    def _height(self) -> int:
        return self.plan.first.sizes.of_thread[0]

    def _run(self, nodes: list[Node]) -> None:
        tile = self.first.tile
        tile.run(nodes, tile.found)

    def _store_numbers(self, store: Store) -> None:
        """Store a number of each row: of the lanes that have the row, the first one does."""
        code, tile = self.code, self.first.tile
        leads = code.compare("eq", self.second.places[1][0], code.integer(0))
        for i in range(self._height):
            tile.move(i, -1)
            tile.nodes.values[store.value] = tile.of(store.value, i, -1)
            conditions = [c for c in (leads, tile.exist[0][i]) if c is not None]

            def body() -> list[Any]:
                tile.nodes.run([store], False, [])
                return []

            code.when(code.both(conditions), body)

    # Elements of a block

    def _elements(self, statement: For, without: Op | None = None) -> None:
        """Code of all elements of the thread."""
        for node in statement.body:
            if node is without:
                continue
            if isinstance(node, For):
                self._make(node, self.parts.made.index(statement))
            elif isinstance(node, Store):
                self.passed[node.buffer] = self._grid(node.value)
            elif isinstance(node, Load) and node.buffer in self.passed:
                self._set(node.result, self.passed[node.buffer])
            else:
                self._run([node])

    def _grid(self, value: Value) -> Grid:
        rows, columns = self.plan.first.sizes.of_thread
        return [[self.first.tile.of(value, i, j) for j in range(columns)] for i in range(rows)]

    def _set(self, value: Value, grid: Grid) -> None:
        tile = self.first.tile
        tile.levels[value] = (True, True)
        for i, row in enumerate(grid):
            for j, element in enumerate(row):
                tile.found[value, i, j] = element

    def _make(self, loop: For, number: int) -> None:
        """A first product's sums of a block."""
        sums = self.firsts[number].multiply(None, self.stage, self._inits(loop, number))
        self._set_sums(loop, number, sums)

    def _inits(self, loop: For, number: int) -> list[Any]:
        """Registers of what a first product is added to."""
        product, (r, c) = self.firsts[number], self.plan.firsts[number].sizes.of_thread
        inits = [product.tile.of(loop.inits[0], i, j) for i in range(r) for j in range(c)]
        return product.sums.packed(inits)

    def _set_sums(self, loop: For, number: int, sums: list[Any]) -> None:
        r, c = self.plan.firsts[number].sizes.of_thread
        values = self.firsts[number].sums.unpacked(sums)
        self._set(loop.results[0], [values[i * c : (i + 1) * c] for i in range(r)])

    def _reduce(self, loop: For) -> None:
        """A reduction over the steps of a block: of the lane's, then of all lanes of a row."""
        chain = StraightLineCode(loop.body).chain(loop.yields[0])
        assert chain is not None
        self._elements(loop, chain.last)
        (term,) = (t for t in chain.terms if t is not loop.arguments[0])
        neutral = self.code.constant(identity(chain.last.name, term.type))
        starts = self._rows(loop.inits[0])
        found = []
        for row, start in zip(self._grid(term), starts, strict=True):
            present = [self._or(v, j, neutral) for j, v in enumerate(row)]
            found.append(combine(chain.last, start, self._joined(chain.last, present)))
        self._set_rows(loop.results[0], found)

    def _or(self, value: Any, column: int, other: Any) -> Any:
        """An element, or another value where there is no such step."""
        exists = self.first.tile.exist[1][column]
        if exists is None:
            return value
        return self.code.value("arith.select", value.type, exists, value, other)

    def _joined(self, op: Op, values: list[Any]) -> Any:
        """A lane's elements of a row, and those of the other lanes that have the row."""
        while len(values) > 1:
            pairs = zip(values[::2], values[1::2], strict=False)
            odd = values[-1:] if len(values) % 2 else []
            values = [combine(op, a, b) for a, b in pairs] + odd
        (value,) = values
        warp, sums = self.first.scope.threads_of_warp, self.plan.unit.sums
        assert sums is not None
        for bit, (row, column) in enumerate(sums.lanes):
            if column and not row:
                value = combine(op, value, from_lane(self.code, value, 1 << bit, warp))
        return value

    # The second product

    def _use(self, totals: list[Any], copies: ChainCopies) -> list[Any]:
        """The totals with the second product of a block added."""
        product = self.second
        sums, operand = product.sums.packed(self._before(totals)), self._operand()
        if self.plan.second.fence:
            # Behind it, words are put together from registers that are not free till then.
            operand.prepare()
        copies.columns_arrive()
        sums = product.multiply(operand.of_call, self.stage, sums)
        copies.columns_are_used()
        return product.sums.unpacked(sums)

    def _before(self, totals: list[Any]) -> list[Any]:
        """The sums in front of a block's second product."""
        product, plan, (loop,) = self.second, self.plan.second, self._loops()
        r, c = plan.sizes.of_thread
        before = plan.sizes.parts.before
        (load,) = (n for n in before if isinstance(n, Load))
        tile = product.tile
        tile.levels[load.result] = (True, True)
        for i in range(r):
            for j in range(c):
                tile.found[load.result, i, j] = totals[i * c + j]
        tile.run([n for n in before if n is not load], tile.found)
        return [tile.of(loop.inits[0], i, j) for i in range(r) for j in range(c)]

    def _operand(self) -> PassedOperand:
        """The second product's first operand, of this block."""
        plan = self.plan.second
        given = self.passed[plan.product.operands[0].load.buffer]
        zero = self.second.tile.nodes.zero(given[0][0].type)
        given = [[self._or(v, j, zero) for j, v in enumerate(row)] for row in given]
        return PassedOperand(self.code, plan, self.plan.unit, self.first.scope.lane, given)

    def _loops(self) -> list[For]:
        return [n for n in self.parts.used.body if isinstance(n, For)]

    def _finish(self, totals: list[Any]) -> None:
        """The epilogue of all rows."""
        last, second = self.last, self.second
        last.first = second.tile.first
        last.nodes.variables.update(second.tile.nodes.variables)
        sums = self.plan.second.unit.sums
        assert sums is not None
        columns = steps_of(sums)
        run = next((n for n, column in enumerate(columns) if column != n), len(columns))
        last.together = (1, run)
        for side in range(2):
            last.stand(second.places[side], side)
        known = dict.fromkeys(v for n in self.plan.parts.last.after for v in n.uses)
        last.handed = [v for v in known if v in last.levels]
        last.finish(totals)
