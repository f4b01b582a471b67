"""The loops of a tiled contraction.

For each piece that a thread computes, block of columns by block of columns, and in these block of
rows by block of rows: operands are copied into panels in the order of their use, and a register
tile's rows and lanes go through the steps of the reduction together. Loops have bounds where blocks
do not divide; what is left of rows and columns is a tile of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import prod

from polyblocks.affine.access import address, join_parts
from polyblocks.affine.analysis.dataflow import ops_of
from polyblocks.affine.analysis.known_values import CASTS
from polyblocks.affine.analysis.reductions import identities
from polyblocks.affine.contraction.absent import Absent
from polyblocks.affine.contraction.copies import along_rows, is_scattered
from polyblocks.affine.contraction.kept_panels import KeptPanels
from polyblocks.affine.contraction.loop_digits import counted, row_of_lines
from polyblocks.affine.contraction.product import Operand, Product
from polyblocks.affine.contraction.step_loops import Place, StepLoops
from polyblocks.affine.contraction.tiling import Tiling
from polyblocks.affine.contraction.windows import innermost
from polyblocks.affine.element import element_bytes
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    AffineAccess,
    Alloca,
    Buffer,
    For,
    Load,
    Node,
    Op,
    Store,
    Value,
    around,
    clone,
)
from polyblocks.affine.ops import Ops
from polyblocks.affine.padding.margins import is_zero
from polyblocks.affine.subnests import mark_tiles
from polyblocks.target import TileUnit

#: Bytes of a buffer that has room on a thread's stack.
STACK_BYTES = 256 * 1024
#: Nodes behind the reduction above which a tile's rows go through them one after the other: copies
#: of long code for every row take longer to compile than they spare.
LONG = 16


#: Puts loops around nodes.
Loops = Callable[[list[Node]], list[Node]]


@dataclass(frozen=True)
class _Blocks:
    """Blocks of one side in one piece.

    Attributes:
        extent: all rows or columns.
        size: of a block.
        loop: counts the piece's blocks.
        number: the block's number, of those of all pieces.
        tile: rows or columns of a register tile.
    """

    extent: int
    size: int
    loop: Var
    number: Expr
    tile: int

    @classmethod
    def of(cls, extent: int, size: int, piece: Expr, pieces: int, tile: int) -> _Blocks:
        count = -(-extent // size)
        mine = Var(-(-count // pieces))
        return cls(extent, size, mine, piece * mine.extent + Expr.of(mine), tile)

    @property
    def count(self) -> int:
        return -(-self.extent // self.size)

    @property
    def begin(self) -> Expr:
        """The first row or column of the block."""
        return self.number * self.size

    def around(self, body: list[Node]) -> list[Node]:
        """The loop over the blocks of the piece."""
        upper: tuple[Expr, ...] = ()
        if self.number.range()[1] >= self.count:
            upper = (Expr(self.count) - self.number + Expr.of(self.loop),)
        return body if self.loop.extent == 1 and not upper else [For(self.loop, body, upper=upper)]

    def left(self) -> Expr:
        """How many there are from the block's first one on."""
        return Expr(self.extent) - self.begin

    def every(self, step: int = 1) -> tuple[Var, tuple[Expr, ...]]:
        """Variable and bounds over whole steps of ``step`` elements."""
        upper = () if self.extent % self.size == 0 else (self.left() // step,)
        return Var(self.size // step), upper

    def at_end(self, body: list[Node]) -> list[Node]:
        """Code for the block with the last rows or columns only."""
        if self.count == 1:
            return body
        return [For(Var(1), body, upper=(self.number - (self.count - 2),))]

    def rest(self, step: int) -> tuple[int, int]:
        """Where whole steps end in the last block, and how many are left."""
        rest = self.extent % step
        return self.extent - rest - (self.count - 1) * self.size, rest


@dataclass(frozen=True)
class _Rows:
    """The rows of a register tile.

    Attributes:
        rows: places in the block.
        panel: the panel that its columns are.
        lane: counts these.
        column: their places in the block.
        values: for each row, what stands for values of the code before the reduction.
    """

    rows: list[Expr]
    panel: Expr
    lane: Var
    column: Expr
    values: list[dict[Value, Value]]


class ContractionBuilder:
    """Builds the nodes of one nest.

    Args:
        product: the contraction.
        tiling: its sizes.
        width: lanes of one vector.
        level: the parallel level that pieces are for; None in a tile, which one thread computes.
        kept: panels that are kept between calls; None if there are no constant arguments.
        absent: what rows need not be multiplied; None for nothing.
    """

    def __init__(
        self,
        product: Product,
        tiling: Tiling,
        width: int,
        level: str | None,
        kept: KeptPanels | None = None,
        absent: Absent | None = None,
    ) -> None:
        self.absent = absent
        self.product = product
        self.tiling = tiling
        self.width = width
        self.level = level
        self.inside = level is None
        self.batch = prod(v.extent for v in product.batch)
        pieces = tiling.row_pieces * tiling.column_pieces
        # Threads have equal shares of the pieces, one after the other.
        total = self.batch * pieces
        shares = min(tiling.threads, total)
        self.thread, self.turn = Var(shares, "t"), Var(-(-total // shares))
        at = Expr.of(self.thread) * self.turn.extent + self.turn
        self.over = (Expr(total) - Expr.of(self.thread) * self.turn.extent,)
        self.place: Place = {}
        rest = at // pieces
        for position in range(len(product.batch) - 1, -1, -1):
            var = product.batch[position]
            self.place[var] = rest % var.extent if position else rest
            rest = rest // var.extent
        inside = at % pieces
        self.row = _Blocks.of(
            product.row.extent,
            tiling.row_block,
            inside // tiling.column_pieces,
            tiling.row_pieces,
            tiling.rows,
        )
        self.column = _Blocks.of(
            product.column.extent,
            tiling.column_block,
            inside % tiling.column_pieces,
            tiling.column_pieces,
            tiling.lanes,
        )
        self.by_pass = tiling.by_pass(product)
        self.along_rows = {
            id(o) for o in product.operands if not self.in_tiles and along_rows(product, o, width)
        }
        self.allocas: list[Node] = []
        copied = [
            o
            for o in product.operands
            if o.load is None
            or (tiling.pack_rows if o.of_rows else tiling.pack_columns or o.kept)
            # A unit's tiles are lines of memory.
            or (self.in_tiles and not product.in_lines(o))
        ]
        self.kept = kept
        for operand in copied:
            if operand.kept and kept is not None:
                kept.add(operand)
        self.panels = {id(o): self._panel(o) for o in copied if not o.kept}
        self.one_pass = tiling.depth >= product.step.extent
        self.partial = (
            [self._partial(r) for r in product.results]
            if product.waits or not self.one_pass
            else []
        )
        self.one_by_one = not self.partial and len(product.after) > LONG
        self.strips = (
            [self._local((width, self.squares * width), b.element) for b in self.partial]
            if product.crossed
            else []
        )
        self.sums = (
            [self._local((tiling.rows, tiling.lanes), r.type) for r in product.results]
            if self.chained or self.one_by_one or (self.in_tiles and not self._stored_at_once())
            else []
        )

    def nodes(self) -> list[Node]:
        """The nest."""
        of_rows = [o for o in self.product.operands if id(o) in self.panels and o.of_rows]
        others = [o for o in self.product.operands if id(o) in self.panels and not o.of_rows]
        copies: list[Node] = []
        if not self.by_pass:
            everything = (Expr(0), self.product.step.extent, ())
            copies = [node for o in others for node in self._copy_columns(o, *everything)]
        inner: list[Node] = self._start() if self.partial and not self._joined_once else []
        inner += self._passes(of_rows, others if self.by_pass else [])
        if self.partial:
            inner += self._finish()
        body = self.column.around([*copies, *self.row.around(inner)])
        if self.turn.extent > 1:
            even = self.over[0].range()[0] >= self.turn.extent
            body = [For(self.turn, body, upper=() if even else self.over)]
        level = self.level if self.thread.extent > 1 else None
        body = [For(self.thread, [*self.allocas, *body], level=level)]
        mark_tiles(body)
        return body

    # Buffers

    def _panel(self, operand: Operand) -> Buffer:
        """Rows or steps one after the other, or, for as many columns as a tile has, steps."""
        type_ = operand.value.type
        size = element_bytes(type_)
        if operand.of_rows:
            shape: tuple[int, ...]
            shape = (self.tiling.row_block, row_of_lines(self.tiling.depth, size))
            if id(operand) in self.along_rows:
                shape = (self.tiling.depth, row_of_lines(self.tiling.row_block, size))
        else:
            steps = self.tiling.depth if self.by_pass else self.product.step.extent
            shape = (steps, row_of_lines(self.tiling.column_block, size))
            if not self.product.by_rows(operand):
                count = -(-self.tiling.column_block // self.tiling.lanes)
                shape = (count, steps, self.tiling.lanes)
        return self._local(shape, type_)

    def _partial(self, result: Value) -> Buffer:
        size = element_bytes(result.type)
        rows, columns = self.tiling.row_block, self.tiling.column_block
        if self.product.crossed:
            # Squares of it are transposed whole.
            rows, columns = self.squares * self.width, -(-columns // self.width) * self.width
        return self._local((rows, row_of_lines(columns, size)), result.type)

    @property
    def squares(self) -> int:
        """Squares of a vector's length, one above the other, that have the rows of a block."""
        return -(-self.tiling.row_block // self.width)

    def _local(self, shape: tuple[int, ...], type_: object) -> Buffer:
        """A buffer of one thread: on its stack, or a part of one for all threads."""
        size = element_bytes(type_)
        if prod(shape) * size <= STACK_BYTES or self.inside:
            buffer = Buffer(shape, type_, "local", bytes_per_element=size)
            self.allocas.append(Alloca(buffer))
            return buffer
        return Buffer((self.thread.extent, *shape), type_, "alloc", bytes_per_element=size)

    def _index(self, buffer: Buffer, index: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Where an element of the thread's part of a buffer is."""
        return index if buffer.kind == "local" else (Expr.of(self.thread), *index)

    def _store(self, value: Value, buffer: Buffer, index: tuple[Expr, ...]) -> Store:
        return Store(value, buffer, self._index(buffer, index))

    # Copies

    def _copy_rows(self, operand: Operand, first: Expr, upper: tuple[Expr, ...]) -> list[Node]:
        """The rows of a block, for the steps of one pass from ``first`` on."""
        counter, ends = self.row.every()
        row = Expr.of(counter)
        along = id(operand) in self.along_rows
        if along:
            row, rows = counted(self.product.rows, counter.extent, ends)

        def copied(step: Expr) -> list[Node]:
            at = {self.product.row: self.row.begin + row, self.product.step: first + step}
            values: dict[Value, Value] = {}
            body = clone(operand.nodes, values, {**self.place, **at})
            index = (step, row) if along else (row, step)
            return [*body, self._store(values[operand.value], self.panels[id(operand)], index)]

        if not along and self._ends_apart(operand):
            # The last word is not full, which would keep the others from being made in vectors.
            last = self.product.step.extent - 1
            full = Var(last)
            body = [For(full, copied(Expr.of(full))), *copied(Expr(last))]
            return [For(counter, body, upper=ends)]
        step, steps = counted(self.product.steps, self.tiling.depth, upper)
        body = copied(step)
        return steps(rows(body)) if along else [For(counter, steps(body), upper=ends)]

    def _ends_apart(self, operand: Operand) -> bool:
        """Whether the last of all steps of an operand is made in another way than the others."""
        step = self.product.step
        if len(self.product.steps) > 1 or not self.one_pass or step.extent < 3:
            return False
        last = Expr.of(step) // (step.extent - 1)
        ((atom, _),) = last.terms
        loads = [n for n in operand.nodes if isinstance(n, Load)]
        return any(a == atom for n in loads for e in n.index for a, _ in e.terms)

    def _copy_columns(
        self, operand: Operand, first: Expr, extent: int, ends: tuple[Expr, ...]
    ) -> list[Node]:
        """Columns of a block side by side, as many as a tile has, for ``extent`` steps.

        Args:
            operand: what is copied.
            first: the first step.
            extent: how many steps, at most.
            ends: bounds of their number.
        """
        steps_of = partial(counted, self.product.steps, extent, ends)
        if self.product.by_rows(operand):
            step, steps = steps_of()
            block = self.column
            upper: tuple[Expr, ...]
            upper = () if block.extent % block.size == 0 else (block.left(),)
            column, columns = counted(self.product.columns, block.size, upper)
            return steps(columns(self._copied(operand, column, first, step)))
        if self.product.steps_first(operand):
            assert not ends
            return self._transpose_columns(operand, first, extent)
        if operand.natural is not None:
            assert not ends
            return self._reorder_columns(operand, operand.natural)
        lanes = self.tiling.lanes
        panel, upper = self.column.every(lanes)
        # A column's place takes longer to find than that of a step, which is linear in its loops.
        scattered = is_scattered(operand, self.product.column)

        def ordered(columns: Loops, steps: Loops, body: list[Node]) -> list[Node]:
            return columns(steps(body)) if scattered else steps(columns(body))

        out: list[Node] = []
        if panel.extent:
            lane = Var(lanes)
            step, steps = steps_of()
            body = self._copied(operand, Expr.of(panel) * lanes + lane, first, step)
            out += ordered(lambda b: [For(panel, [For(lane, b)], upper=upper)], steps, body)
        begin, rest = self.column.rest(lanes)
        if rest:
            lane = Var(rest)
            step, steps = steps_of()
            body = self._copied(operand, Expr.of(lane) + begin, first, step)
            out += self.column.at_end(ordered(lambda b: [For(lane, b)], steps, body))
        return out

    def _transpose_columns(self, operand: Operand, first: Expr, extent: int) -> list[Node]:
        """As :meth:`_copy_columns`, from memory in which steps are neighbours: square by square."""
        width = self.width
        square, upper = self.column.every(width)
        out: list[Node] = []
        if square.extent:
            columns = Expr.of(square) * width
            parts = self._squares(
                extent, lambda a, step: self._copied(operand, columns + a, first, step)
            )
            out += [For(square, [part], upper=upper) for part in parts]
        begin, rest = self.column.rest(width)
        if rest:
            a, step = Var(rest), Var(extent)
            body = self._copied(operand, Expr.of(a) + begin, first, Expr.of(step))
            out += self.column.at_end([For(a, [For(step, body)])])
        return out

    def _squares(self, extent: int, element: Callable[[Var, Expr], list[Node]]) -> list[Node]:
        """Loops over the steps of as many columns as a vector has lanes: squares, then the rest.

        Args:
            extent: how many steps.
            element: what is done for a column and a step.
        """
        width = self.width
        whole = extent - extent % width
        out: list[Node] = []
        if whole:
            a, b, step = Var(width), Var(width), Var(whole // width)
            body = element(a, Expr.of(step) * width + Expr.of(b))
            out.append(For(step, [For(a, [For(b, body)])]))
        if whole < extent:
            a, step = Var(width), Var(extent - whole)
            out.append(For(step, [For(a, element(a, Expr.of(step) + whole))]))
        return out

    def _reorder_columns(self, operand: Operand, load: Load) -> list[Node]:
        """As :meth:`_transpose_columns` of all steps, which then change their order row by row."""
        width, extent = self.width, self.product.step.extent
        rows = self._local((extent, width), operand.value.type)
        loops = [Var(e) for e in self.product.steps]
        number = natural = Expr(0)
        for var, stride in zip(loops, self.product.strides, strict=True):
            number = number * var.extent + var
            natural = natural + Expr.of(var) * stride
        square, upper = self.column.every(width)
        first = Expr.of(square) * width
        out: list[Node] = []

        def transposed(a: Var, step: Expr) -> list[Node]:
            body, value = self._load_natural(load, first + a, step)
            return [*body, self._store(value, rows, (step, Expr.of(a)))]

        if square.extent:
            inner = self._squares(extent, transposed)
            a = Var(width)
            body: list[Node] = []
            value = self._load(body, rows, (natural, Expr.of(a)))
            body.append(self._panel_store(operand, value, first + a, number))
            inner += around(loops, [For(a, body)])
            out.append(For(square, inner, upper=upper))
        begin, rest = self.column.rest(width)
        if rest:
            a = Var(rest)
            body, value = self._load_natural(load, Expr.of(a) + begin, natural)
            body.append(self._panel_store(operand, value, Expr.of(a) + begin, number))
            out += self.column.at_end([For(a, around(loops, body))])
        return out

    def _load_natural(self, load: Load, column: Expr, step: Expr) -> tuple[list[Node], Value]:
        """A load at a column of the block, and what it loads."""
        at = {self.product.column: self.column.begin + column, self.product.step: step}
        values: dict[Value, Value] = {}
        body = clone([load], values, {**self.place, **at})
        return body, values[load.result]

    def _copied(self, operand: Operand, column: Expr, first: Expr, step: Expr) -> list[Node]:
        """Copies one element to its panel; ``column`` counts from the block's first one."""
        at = {self.product.column: self.column.begin + column, self.product.step: first + step}
        values: dict[Value, Value] = {}
        body = clone(operand.nodes, values, {**self.place, **at})
        body.append(self._panel_store(operand, values[operand.value], column, step))
        return body

    def _panel_store(self, operand: Operand, value: Value, column: Expr, step: Expr) -> Store:
        """Stores an element of a column of the block in its panel."""
        index: tuple[Expr, ...] = (step, column)
        if not self.product.by_rows(operand):
            index = (column // self.tiling.lanes, step, column % self.tiling.lanes)
        return self._store(value, self.panels[id(operand)], index)

    # Partial results

    def _start(self) -> list[Node]:
        """Partial results that change nothing, or that sums start with."""
        row, upper = self.row.every()
        column, ends = self.column.every()
        body, values = self._before(Expr.of(row), Expr.of(column))
        inits = [values.get(v, v) for v in self.product.inits]
        neutral = self._neutral()
        if neutral is not None:
            body, inits = list(neutral), [op.results[0] for op in neutral]
        for init, buffer in zip(inits, self.partial, strict=True):
            body.append(self._store(init, buffer, (Expr.of(row), Expr.of(column))))
        return [For(row, [For(column, body, upper=ends)], upper=upper)]

    def _finish(self) -> list[Node]:
        """The epilogue, in the program's loops where these fit."""
        row, upper = self.row.every()
        column, ends = self.column.every()
        product = self.product
        at_row, rows = counted(self._loops(product.row, product.rows), row.extent, upper)
        if self.strips:
            return self._finish_strips(at_row, rows)
        at_column, columns_around = counted(
            self._loops(product.column, product.columns), column.extent, ends
        )
        at = (at_row, at_column)
        body = self._finished(*at, self.partial, at)
        # Neighbours in memory, or what is closest to that, are rows or columns.
        columns_inside = product.inside or not product.waits
        return rows(columns_around(body)) if columns_inside else columns_around(rows(body))

    def _finish_strips(self, row: Expr, rows: Loops) -> list[Node]:
        """As :meth:`_finish` where rows are stored side by side: they are transposed first.

        As many columns at a time as a vector has lanes.
        """
        width = self.width
        extent = self.tiling.column_block
        strip, a, b = Var(-(-extent // width)), Var(width), Var(width)
        square = Var(self.squares)
        first = Expr.of(strip) * width
        across: list[Node] = []
        for source, copy in zip(self.partial, self.strips, strict=True):
            at = Expr.of(square) * width + a
            body: list[Node] = []
            value = self._load(body, source, (at, first + b))
            body.append(self._store(value, copy, (Expr.of(b), at)))
            across.append(For(square, [For(a, [For(b, body)])]))
        column = Var(width)
        finished = rows(self._finished(row, first + column, self.strips, (Expr.of(column), row)))
        left = Expr(extent) if self.column.extent % extent == 0 else self.column.left()
        inside = () if (left - first).range()[0] >= width else (left - first,)
        upper = () if left.is_constant else ((left + (width - 1)) // width,)
        return [For(strip, [*across, For(column, finished, upper=inside)], upper=upper)]

    def _finished(
        self, row: Expr, column: Expr, buffers: list[Buffer], at: tuple[Expr, Expr]
    ) -> list[Node]:
        """The epilogue of one result, at a place of these buffers."""
        body, values = self._before(row, column)
        found = [self._load(body, buffer, at) for buffer in buffers]
        if self._neutral() is not None:
            found = self._with_inits(found, values, body)
        values.update(zip(self.product.results, found, strict=True))
        return [*body, *clone(self.product.after, values, self._place(row, column))]

    def _with_inits(
        self, found: list[Value], values: dict[Value, Value], out: list[Node]
    ) -> list[Value]:
        """Results of an element joined to what its sums start with."""
        combiners = self.product.combiners
        assert combiners is not None
        inits = [values.get(v, v) for v in self.product.inits]
        ops = Ops(out)
        return [
            ops.like(op, [init, value])
            for op, init, value in zip(combiners, inits, found, strict=True)
        ]

    def _loops(self, var: Var, extents: list[int]) -> list[int]:
        """The loops that a variable of one side stands for, if results are stored in these."""
        exprs = [
            e
            for n in (*self.product.before, *self.product.after)
            if isinstance(n, AffineAccess)
            for e in n.index
        ]
        return extents if any(e.coefficient(var) is None for e in exprs) else []

    @property
    def _joined_once(self) -> bool:
        """Whether what sums start with is joined to the results of a single pass, at its end."""
        return self.one_pass and self._neutral() is not None

    def _neutral(self) -> list[Op] | None:
        """Constants that partial results start with, if these may be joined in any order."""
        combiners = self.product.combiners
        return None if combiners is None else identities(combiners)

    # The kernel

    def _passes(self, rows: list[Operand], columns: list[Operand]) -> list[Node]:
        """All passes over a block's steps, for which these operands are copied."""
        extent, depth = self.product.step.extent, self.tiling.depth
        number = Var(-(-extent // depth))
        first = Expr.of(number) * depth
        upper = (Expr(extent) - first,) if extent % depth else ()
        body: list[Node] = [
            node for o in columns for node in self._copy_columns(o, first, depth, upper)
        ]
        body += [node for o in rows for node in self._copy_rows(o, first, upper)]
        body += self._kernels(first, upper)
        return body if number.extent == 1 else [For(number, body)]

    def _kernels(self, first: Expr, upper: tuple[Expr, ...]) -> list[Node]:
        """The register tiles of a block: whole ones, and what is left of columns."""
        if self.in_tiles:
            assert not upper
            # Those of the same rows one after the other: a unit is so fast that results have to go
            # to memory line by line.
            return self._in_heights(
                lambda begin, height: self._in_panels(
                    lambda panel, count: self._unit_tile(begin, height, panel, count, first)
                )
            )
        return self._in_panels(lambda panel, count: [self._lanes(panel, count, first, upper)])

    def _in_panels(self, tile: Callable[[Expr, int], list[Node]]) -> list[Node]:
        """Code for each panel of a block, and for the remaining columns.

        Args:
            tile: gets the panel, and how many columns of it.
        """
        lanes = self.tiling.lanes
        panel, ends = self.column.every(lanes)
        out: list[Node] = []
        if panel.extent:
            out.append(For(panel, tile(Expr.of(panel), lanes), upper=ends))
        begin, rest = self.column.rest(lanes)
        if rest:
            out += self.column.at_end(tile(Expr(begin // lanes), rest))
        return out

    def _in_heights(self, tile: Callable[[Expr, int], list[Node]]) -> list[Node]:
        """Code for the rows of each register tile of a block, and for the remaining rows.

        Args:
            tile: gets the first row, and how many.
        """
        height = self.tiling.rows
        number, ends = self.row.every(height)
        out: list[Node] = []
        if number.extent:
            out.append(For(number, tile(Expr.of(number) * height, height), upper=ends))
        begin, rest = self.row.rest(height)
        if rest:
            out += self.row.at_end(tile(Expr(begin), rest))
        return out

    def _unit_tile(
        self, begin: Expr, height: int, panel: Expr, count: int, first: Expr
    ) -> list[Node]:
        """The product in a unit's own tiles, and its epilogue, row by row.

        Args:
            begin: the first row, in the block.
            height: how many rows.
            panel: the panel.
            count: how many columns of it.
            first: the first step.
        """
        product = self.product
        assert product.unit is not None
        row, column, step = Var(height), Var(count), Var(self.tiling.depth)
        (zero,) = self._zeros()
        carried, found = (_like(product.results) for _ in range(2))
        place = begin + row
        tile = _Rows([place], panel, column, panel * self.tiling.lanes + column, [{}])
        body: list[Node] = []
        at = first + step
        after = self._step(tile, at, Expr.of(step), {0: carried}, body)[0]
        steps = For(step, body, [zero.results[0]], carried, found, after)
        if not self.sums:
            values = dict(zip(product.results, found, strict=True))
            stored = clone(product.after, values, self._place(place, tile.column))
            return [For(row, [For(column, [zero, steps, *stored])], unit=product.unit.name)]
        (sums,) = self.sums
        waits = Store(found[0], sums, (Expr.of(row), Expr.of(column)))
        unit = For(row, [For(column, [zero, steps, waits])], unit=product.unit.name)
        lane, bound = _lane(count)
        rows = [begin + number for number in range(height)]
        behind = _Rows(rows, panel, lane, panel * self.tiling.lanes + lane, [])
        return [
            unit,
            For(lane, self._rows_behind(behind, []), upper=bound, lanes=self.tiling.lanes),
        ]

    def _lanes(self, panel: Expr, count: int, first: Expr, upper: tuple[Expr, ...]) -> For:
        """All rows of a block for the columns of one panel."""
        lane, bound = _lane(count)
        body: list[Node] = []
        excess = self._excess(panel, lane, first, upper, body)

        def tile(begin: Expr, height: int) -> list[Node]:
            rows = [begin + r for r in range(height)]
            return self._tile(rows, panel, lane, first, upper, excess)

        body += self._in_heights(tile)
        return For(lane, body, upper=bound, lanes=self.tiling.lanes)

    def _excess(
        self, panel: Expr, lane: Var, first: Expr, upper: tuple[Expr, ...], out: list[Node]
    ) -> Value | None:
        """The contribution of the rows' offset to a column's sum in this pass, or None."""
        product = self.product
        if product.offset is None:
            return None
        (argument,), (neutral,) = product.arguments, self._zeros()
        step = Var(self.tiling.depth)
        column = panel * self.tiling.lanes + Expr.of(lane)
        inner: list[Node] = []
        values = {argument: Value(argument.type)}
        place = (Expr.of(step), first + step)
        self._columns(_Rows([], panel, lane, column, []), *place, values, inner)
        for operand in product.operands:
            if operand.of_rows:
                values[operand.value] = Ops(inner).constant(product.offset, operand.value.type)
        inner += clone(product.body, values, {})
        (value,) = product.yields
        found = Value(argument.type)
        out.append(neutral)
        out.append(
            For(
                *(step, inner, [neutral.results[0]], [values[argument]], [found], [values[value]]),
                upper=upper,
            )
        )
        return found

    def _zeros(self) -> list[Op]:
        """Constants of the sums of a unit."""
        neutral = self._neutral()
        assert neutral is not None
        return neutral

    def _tile(
        self,
        rows: list[Expr],
        panel: Expr,
        lane: Var,
        first: Expr,
        upper: tuple[Expr, ...],
        excess: Value | None,
    ) -> list[Node]:
        """One register tile: its rows go through the steps together."""
        product = self.product
        column = panel * self.tiling.lanes + Expr.of(lane)
        out: list[Node] = []
        maps: list[dict[Value, Value]] = []
        inits: list[Value] = []
        for row in rows:
            nodes, values = self._before(row, column)
            maps.append(values)
            out += nodes
            if self.partial:
                inits += self._partial_inits(out, row, column)
            else:
                inits += [values.get(v, v) for v in product.inits]
        if excess is not None:
            inits = [Ops(out).op("arith.subi", [init, excess]) for init in inits]
        tile = _Rows(rows, panel, lane, column, maps)
        if self.chained:
            self._chains(tile, inits, first, upper, out)
            found = [] if self.one_by_one else self._sums(tile, out)
        else:
            count = len(product.results)
            starts = {n: inits[n * count : (n + 1) * count] for n in range(len(rows))}
            loops = self._step_loops(tile, first, upper)
            after = self._steps(tile, loops, 0, {}, starts, first, out)
            found = [value for n in range(len(rows)) for value in after[n]]
        if self.one_by_one:
            return [*out, *self._rows_behind(tile, found)]
        count = len(product.results)
        for number, (row, values) in enumerate(zip(rows, maps, strict=True)):
            mine = found[number * count : (number + 1) * count]
            if self.partial:
                out += self._join(mine, row, column)
            else:
                values.update(zip(product.results, mine, strict=True))
                out += clone(product.after, values, self._place(row, column))
        return out

    def _chains(
        self,
        tile: _Rows,
        inits: list[Value],
        first: Expr,
        upper: tuple[Expr, ...],
        out: list[Node],
    ) -> None:
        """As many steps as a chain of additions may have at a time, the sums added up."""
        out += [
            Store(init, buffer, at)
            for init, (buffer, at) in zip(inits, self._places(tile), strict=True)
        ]
        rows = tuple(range(len(tile.rows)))
        out += self._around_chains(tile, self._step_loops(tile, first, upper), 0, {}, rows, first)

    def _around_chains(
        self,
        tile: _Rows,
        loops: StepLoops,
        level: int,
        values: Place,
        rows: tuple[int, ...],
        first: Expr,
    ) -> list[Node]:
        """The loops around chains from one of them on.

        Args:
            tile: a register tile.
            loops: over its steps.
            level: the number of the loop.
            values: of the variables of loops around that.
            rows: those that take part.
            first: the first step.
        """
        if level == len(loops.outside):
            return self._chain(tile, loops, values, rows, first)
        var, bounds = loops.outside[level]
        out: list[Node] = []
        for fresh, value, present in loops.iterations(var, rows):
            inside = {**values, var: value}
            body = self._around_chains(tile, loops, level + 1, inside, present, first)
            lower, upper = (tuple(e.substitute(values) for e in side) for side in bounds)
            out += body if fresh is None else [For(fresh, body, lower=lower, upper=upper)]
        return out

    def _chain(
        self, tile: _Rows, loops: StepLoops, values: Place, rows: tuple[int, ...], first: Expr
    ) -> list[Node]:
        """One chain of additions, added to the sums."""
        combiners = self.product.combiners
        assert combiners is not None
        neutral = self._neutral()
        assert neutral is not None
        body: list[Node] = [*neutral]
        sums = {row: [op.results[0] for op in neutral] for row in rows}
        found = self._steps(tile, loops, 0, values, sums, first, body)
        places = self._places(tile)
        count = len(combiners)
        for row in rows:
            mine = places[row * count : (row + 1) * count]
            for op, value, (buffer, at) in zip(combiners, found[row], mine, strict=True):
                old = self._load(body, buffer, at)
                body.append(Store(Ops(body).like(op, [old, value]), buffer, at))
        return body

    def _step_loops(self, tile: _Rows, first: Expr, upper: tuple[Expr, ...]) -> StepLoops:
        """The loops over the steps of a pass, from the step ``first`` on up to bounds of these."""
        windows = self.product.windows
        chain = self.tiling.chain
        if windows is None:
            loops = StepLoops.of([self.tiling.depth], chain)
            return loops.until(upper) if upper else loops
        if self.absent is not None:
            # Loop by loop: those that are one may differ in what is absent.
            extents = innermost([e for e in self.product.steps if e > 1] or [1], self.tiling.depth)
            if extents is not None:
                single = StepLoops.of(extents, chain)
                single = single.without(self.absent, self._row_places(tile, first + single.number))
                if single.written_out is not None:
                    return single
        extents = innermost(windows.steps, self.tiling.depth)
        assert extents is not None
        loops = StepLoops.of(extents, chain)
        if self.absent is None:
            return loops
        return loops.without(self.absent, self._row_places(tile, first + loops.number))

    def _row_places(self, tile: _Rows, step: Expr) -> list[Place]:
        return [{**self._place(row, tile.column), self.product.step: step} for row in tile.rows]

    def _places(self, tile: _Rows) -> list[tuple[Buffer, tuple[Expr, ...]]]:
        """Where the sums of a tile are."""
        return [
            (buffer, (Expr(number), Expr.of(tile.lane)))
            for number in range(len(tile.rows))
            for buffer in self.sums
        ]

    def _sums(self, tile: _Rows, out: list[Node]) -> list[Value]:
        return [self._load(out, buffer, at) for buffer, at in self._places(tile)]

    def _rows_behind(self, tile: _Rows, found: list[Value]) -> list[Node]:
        """The epilogue, row by row; results stay where sums are.

        Args:
            tile: its rows.
            found: the results; none if they are there already.
        """
        out: list[Node] = [
            Store(value, buffer, at)
            for value, (buffer, at) in zip(found, self._places(tile) if found else (), strict=True)
        ]
        number = Var(len(tile.rows))
        row = tile.rows[0] + number
        body, values = self._before(row, tile.column)
        sums = [self._load(body, b, (Expr.of(number), Expr.of(tile.lane))) for b in self.sums]
        if self.partial:
            return [*out, For(number, [*body, *self._join(sums, row, tile.column)])]
        if self.in_tiles:
            sums = self._with_inits(sums, values, body)
        values.update(zip(self.product.results, sums, strict=True))
        body += clone(self.product.after, values, self._place(row, tile.column))
        return [*out, For(number, body)]

    def _steps(
        self,
        tile: _Rows,
        loops: StepLoops,
        level: int,
        values: Place,
        sums: dict[int, list[Value]],
        first: Expr,
        out: list[Node],
    ) -> dict[int, list[Value]]:
        """The loops that a chain is, from one of them on.

        Args:
            tile: a register tile.
            loops: over its steps.
            level: the number of the loop.
            values: of the variables of loops around that.
            sums: for each row that takes part, the values that are carried.
            first: the first step.
            out: gets the loops.

        Returns:
            For each row, the values after the steps.
        """
        if level == len(loops.within):
            number = loops.number.substitute(values)
            return self._step(tile, first + number, number, sums, out)
        var, bounds = loops.within[level]
        found = dict(sums)
        for fresh, value, present in loops.iterations(var, tuple(sums)):
            before = {row: found[row] for row in present}
            inside = {**values, var: value}
            if fresh is None:
                found |= self._steps(tile, loops, level + 1, inside, before, first, out)
                continue
            carried = {row: _like(mine) for row, mine in before.items()}
            after = {row: _like(mine) for row, mine in before.items()}
            body: list[Node] = []
            yielded = self._steps(tile, loops, level + 1, inside, carried, first, body)
            lower, upper = (tuple(e.substitute(values) for e in side) for side in bounds)
            inits, arguments, results, yields = (
                [v for row in present for v in each[row]]
                for each in (before, carried, after, yielded)
            )
            out.append(
                For(fresh, body, inits, arguments, results, yields, lower=lower, upper=upper)
            )
            found |= after
        return found

    def _step(
        self,
        tile: _Rows,
        at: Expr,
        local: Expr,
        sums: dict[int, list[Value]],
        out: list[Node],
    ) -> dict[int, list[Value]]:
        """One step of some rows: ``at`` counts all of them, ``local`` those of the pass."""
        product = self.product
        found: dict[int, list[Value]] = {}
        shared: dict[Value, Value] = {}
        self._columns(tile, local, at, shared, out)
        for number, carried in sums.items():
            row = tile.rows[number]
            arguments = dict(zip(product.arguments, carried, strict=True))
            own = {**tile.values[number], **shared, **arguments}
            place = {**self._place(row, tile.column), product.step: at}
            for operand in product.operands:
                if operand.of_rows:
                    index: tuple[Expr, ...] = (row, local)
                    if id(operand) in self.along_rows:
                        index = (local, row)
                    if self._is_kept(operand):
                        index = self._kept_index(operand, place, tile)
                    self._operand(operand, place, index, own, out)
            out += clone(product.body, own, place)
            found[number] = [own.get(v, v) for v in product.yields]
        return found

    def _columns(
        self, tile: _Rows, local: Expr, at: Expr, values: dict[Value, Value], out: list[Node]
    ) -> None:
        """Load what columns move for a step, which ``at`` and ``local`` count as in a tile."""
        for operand in self.product.operands:
            if operand.of_rows:
                continue
            place = {**self._place(Expr(0), tile.column), self.product.step: at}
            copied = local if self.by_pass else at
            index: tuple[Expr, ...] = (tile.panel, copied, Expr.of(tile.lane))
            if self.product.by_rows(operand):
                index = (copied, tile.column)
            if self._is_kept(operand):
                index = self._kept_index(operand, place, tile)
            self._operand(operand, place, index, values, out)

    def _operand(
        self,
        operand: Operand,
        place: Place,
        index: tuple[Expr, ...],
        values: dict[Value, Value],
        out: list[Node],
    ) -> None:
        """Load an operand from its panel, or from where it is."""
        panel = self.panels.get(id(operand))
        if self.kept is not None and self._is_kept(operand):
            panel = self.kept.buffer(operand)
            assert panel is not None
            values[operand.value] = Value(panel.element)
            out.append(Load(values[operand.value], panel, index))
            return
        if panel is not None:
            values[operand.value] = self._load(out, panel, index)
            return
        assert operand.load is not None
        (load,) = clone([operand.load], values, place)
        if operand.looped:
            assert isinstance(load, Load)
            load.index = tuple(join_parts(e) for e in load.index)
        out.append(load)

    def _is_kept(self, operand: Operand) -> bool:
        return self.kept is not None and self.kept.buffer(operand) is not None

    def _kept_index(self, operand: Operand, place: Place, tile: _Rows) -> tuple[Expr, ...]:
        """Where an operand is in what is kept of it."""
        assert self.kept is not None
        panels = self.column.number * (self.column.size // self.tiling.lanes)
        first = panels if self.column.count > 1 else Expr(0)
        return self.kept.index(operand, place, first + tile.panel, Expr.of(tile.lane))

    def _partial_inits(self, out: list[Node], row: Expr, column: Expr) -> list[Value]:
        neutral = self._neutral()
        if neutral is None:
            return [self._load(out, buffer, (row, column)) for buffer in self.partial]
        out += neutral
        return [op.results[0] for op in neutral]

    def _join(self, found: list[Value], row: Expr, column: Expr) -> list[Node]:
        """Join what one row of a tile has found in a pass to the partial results."""
        out: list[Node] = []
        combiners = self.product.combiners
        if self._neutral() is not None and not self.one_pass:
            assert combiners is not None
            old = [self._load(out, buffer, (row, column)) for buffer in self.partial]
            found = [
                Ops(out).like(op, [before, value])
                for op, before, value in zip(combiners, old, found, strict=True)
            ]
        for value, buffer in zip(found, self.partial, strict=True):
            out.append(self._store(value, buffer, (row, column)))
        return out

    # Small things

    @property
    def in_tiles(self) -> bool:
        """Whether a matrix unit computes it in tiles of its own."""
        return isinstance(self.product.unit, TileUnit)

    def _stored_at_once(self) -> bool:
        """Whether sums are results as they are, and a tile of them is lines of memory."""
        product = self.product
        if self.partial or not product.in_order or len(product.after) != 1:
            return False
        (stored,) = product.after
        if not isinstance(stored, Store) or stored.value not in product.results:
            return False
        (init,) = product.inits
        makers = ops_of(product.before)
        while init in makers and makers[init].name in CASTS:
            (init,) = makers[init].operands
        if init not in makers or not is_zero(makers[init]):
            return False
        place = address(stored.buffer, stored.index)
        return place.coefficient(product.row) is not None and place.coefficient(product.column) == 1

    @property
    def chained(self) -> bool:
        """Whether sums of a pass are added up in parts."""
        return self.tiling.chain < self.tiling.depth

    def _before(self, row: Expr, column: Expr) -> tuple[list[Node], dict[Value, Value]]:
        """The code before the reduction for one element, and its values."""
        values: dict[Value, Value] = {}
        return clone(self.product.before, values, self._place(row, column)), values

    def _place(self, row: Expr, column: Expr) -> Place:
        """Values of the variables at an element of the block."""
        return {
            **self.place,
            self.product.row: self.row.begin + row,
            self.product.column: self.column.begin + column,
        }

    def _load(self, out: list[Node], buffer: Buffer, index: tuple[Expr, ...]) -> Value:
        value = Value(buffer.element)
        out.append(Load(value, buffer, self._index(buffer, index)))
        return value


def _lane(count: int) -> tuple[Var, tuple[Expr, ...]]:
    """Variable over ``count`` columns of a register tile, and its bound.

    A variable with one value would be none, and nothing a lane.
    """
    return Var(max(2, count)), (Expr(1),) if count == 1 else ()


def _like(values: list[Value]) -> list[Value]:
    return [Value(v.type) for v in values]
