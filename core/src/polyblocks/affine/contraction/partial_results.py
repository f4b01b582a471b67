"""Partial results of a block: sums that wait in a buffer between passes, or for the epilogue."""

from __future__ import annotations

from polyblocks.affine.access import row_of_lines
from polyblocks.affine.contraction.frame import Frame
from polyblocks.affine.contraction.loop_digits import PARTS, counted
from polyblocks.affine.contraction.products.product import extents
from polyblocks.affine.contraction.staging import Loops
from polyblocks.affine.element import element_bytes
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import AffineAccess, Buffer, For, Node, Value, clone
from polyblocks.affine.ops import Ops


class PartialResults:
    """Buffers for the results of a block; falsy if results need none.

    Args:
        frame: the block.

    Attributes:
        buffers: one for each result.
        strips: the same for as many columns as a vector has lanes, where they are transposed.
    """

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.product = product = frame.product
        self.tiling = frame.tiling
        waits = product.waits or not frame.one_pass
        self.buffers = [self._buffer(r) for r in product.results] if waits else []
        shape = frame.width, self.squares * frame.width
        crossed = self.buffers if product.crossed else []
        self.strips = [frame.local(shape, b.element) for b in crossed]

    def __bool__(self) -> bool:
        return bool(self.buffers)

    def _buffer(self, result: Value) -> Buffer:
        size = element_bytes(result.type)
        rows, columns = self.tiling.row_block, self.tiling.column_block
        if self.product.crossed:
            # Squares of it are transposed whole.
            rows, columns = (
                self.squares * self.frame.width,
                -(-columns // self.frame.width) * self.frame.width,
            )
        return self.frame.local((rows, row_of_lines(columns, size)), result.type)

    @property
    def squares(self) -> int:
        """Squares of a vector's length, one above the other, that have the rows of a block."""
        return -(-self.tiling.row_block // self.frame.width)

    def start(self) -> list[Node]:
        """Partial results that change nothing, or that sums start with."""
        row, upper = self.frame.row.full_steps()
        column, ends = self.frame.column.full_steps()
        body, values = self.frame.before(Expr.of(row), Expr.of(column))
        inits = [values.get(v, v) for v in self.product.inits]
        neutral = self.frame.neutral()
        if neutral is not None:
            body, inits = list(neutral), [op.results[0] for op in neutral]
        for init, buffer in zip(inits, self.buffers, strict=True):
            body.append(self.frame.store(init, buffer, (Expr.of(row), Expr.of(column))))
        return [For(row, [For(column, body, upper=ends)], upper=upper)]

    def finish(self) -> list[Node]:
        """The epilogue, in the program's loops where these fit."""
        row, upper = self.frame.row.full_steps()
        column, ends = self.frame.column.full_steps()
        product = self.product
        loops = self._loops(product.row, extents(product.rows))
        # Where a vector is of rows, parts of a row's loop are vectors.
        shortest = max(2, self.frame.width // PARTS) if self.strips else None
        at_row, rows = counted(loops, row.extent, upper, shortest)
        if self.strips:
            return self._finish_strips(at_row, rows)
        at_column, columns_around = counted(
            self._loops(product.column, extents(product.columns)), column.extent, ends
        )
        at = (at_row, at_column)
        body = self._finished(*at, self.buffers, at)
        # Neighbours in memory, or what is closest to that, are rows or columns.
        columns_inside = product.inside or not product.waits
        return rows(columns_around(body)) if columns_inside else columns_around(rows(body))

    def _finish_strips(self, row: Expr, rows: Loops) -> list[Node]:
        """As :meth:`_finish` where rows are stored side by side: they are transposed first.

        As many columns at a time as a vector has lanes.
        """
        width = self.frame.width
        extent = self.tiling.column_block
        strip, a, b = Var(-(-extent // width)), Var(width), Var(width)
        square = Var(self.squares)
        first = Expr.of(strip) * width
        across: list[Node] = []
        for source, copy in zip(self.buffers, self.strips, strict=True):
            at = Expr.of(square) * width + a
            body: list[Node] = []
            value = self.frame.load(body, source, (at, first + b))
            body.append(self.frame.store(value, copy, (Expr.of(b), at)))
            across.append(For(square, [For(a, [For(b, body)])]))
        column = Var(width)
        finished = rows(self._finished(row, first + column, self.strips, (Expr.of(column), row)))
        block = self.frame.column
        remaining = Expr(extent) if block.extent % extent == 0 else block.remaining()
        inside = () if (remaining - first).range()[0] >= width else (remaining - first,)
        upper = () if remaining.is_constant else ((remaining + (width - 1)) // width,)
        return [For(strip, [*across, For(column, finished, upper=inside)], upper=upper)]

    def _finished(
        self, row: Expr, column: Expr, buffers: list[Buffer], at: tuple[Expr, Expr]
    ) -> list[Node]:
        """The epilogue of one result, at a place of these buffers."""
        body, values = self.frame.before(row, column)
        found = [self.frame.load(body, buffer, at) for buffer in buffers]
        if self.frame.neutral() is not None:
            found = self.frame.with_inits(found, values, body)
        values.update(zip(self.product.results, found, strict=True))
        return [*body, *clone(self.product.after, values, self.frame.at(row, column))]

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
    def joined_once(self) -> bool:
        """Whether what sums start with is joined to the results of a single pass, at its end."""
        return self.frame.one_pass and self.frame.neutral() is not None

    def inits(self, out: list[Node], row: Expr, column: Expr) -> list[Value]:
        neutral = self.frame.neutral()
        if neutral is None:
            return [self.frame.load(out, buffer, (row, column)) for buffer in self.buffers]
        out += neutral
        return [op.results[0] for op in neutral]

    def join(self, found: list[Value], row: Expr, column: Expr) -> list[Node]:
        """Join what one row of a tile has found in a pass to the partial results."""
        out: list[Node] = []
        combiners = self.product.combiners
        if self.frame.neutral() is not None and not self.frame.one_pass:
            assert combiners is not None
            old = [self.frame.load(out, buffer, (row, column)) for buffer in self.buffers]
            found = [
                Ops(out).like(op, [before, value])
                for op, before, value in zip(combiners, old, found, strict=True)
            ]
        for value, buffer in zip(found, self.buffers, strict=True):
            out.append(self.frame.store(value, buffer, (row, column)))
        return out
