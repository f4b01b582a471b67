"""Operands copied into panels: in the order in which register tiles use them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from polyblocks.affine.access import row_of_lines
from polyblocks.affine.analysis.contractions import Operand
from polyblocks.affine.buffers.copies import PACK, BoxCopy
from polyblocks.affine.contraction.copies import along_rows, copy_extents, is_scattered
from polyblocks.affine.contraction.frame import Frame
from polyblocks.affine.contraction.loop_digits import counted
from polyblocks.affine.element import element_bytes
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import Buffer, For, Load, Node, Store, Value, around, clone

#: Puts loops around nodes.
Loops = Callable[[list[Node]], list[Node]]


def mark_packing(nodes: list[Node]) -> list[Node]:
    """Mark loops that copy elements as they are, or convert each, as copies into a panel.

    Others compute what they store, of several elements.
    """
    for node in nodes:
        if isinstance(node, For):
            if BoxCopy.matches(node):
                node.copy = PACK
            else:
                mark_packing(node.body)
    return nodes


class Staging:
    """Panels of a block's operands, and the copies that fill them.

    Args:
        frame: the block.
        copied: operands that have a panel.

    Attributes:
        panels: by identity of the operand.
        along_rows: identities of operands of rows whose panels have rows side by side.
    """

    def __init__(self, frame: Frame, copied: list[Operand]) -> None:
        self.frame = frame
        self.product = product = frame.product
        self.tiling = frame.tiling
        self.along_rows = {
            id(o)
            for o in product.operands
            if not frame.in_tiles and along_rows(product, o, frame.width)
        }
        self.panels = {id(o): self._panel(o) for o in copied}

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
            steps = self.tiling.depth if self.frame.by_pass else self.product.step.extent
            shape = (steps, row_of_lines(self.tiling.column_block, size))
            if not self.product.by_rows(operand):
                count = -(-self.tiling.column_block // self.tiling.lanes)
                shape = (count, steps, self.tiling.lanes)
        return self.frame.local(shape, type_)

    def copy_rows(self, operand: Operand, first: Expr, upper: tuple[Expr, ...]) -> list[Node]:
        """The rows of a block, for the steps of one pass from ``first`` on."""
        return mark_packing(self._copy_rows(operand, first, upper))

    def _copy_rows(self, operand: Operand, first: Expr, upper: tuple[Expr, ...]) -> list[Node]:
        counter, ends = self.frame.row.full_steps()
        row = Expr.of(counter)
        along = id(operand) in self.along_rows
        if along:
            counts = copy_extents(operand, self.product.row, self.product.rows)
            row, rows = counted(counts, counter.extent, ends)

        def copied(step: Expr) -> list[Node]:
            at = {self.product.row: self.frame.row.begin + row, self.product.step: first + step}
            values: dict[Value, Value] = {}
            body = clone(operand.nodes, values, {**self.frame.place, **at})
            index = (step, row) if along else (row, step)
            return [*body, self.frame.store(values[operand.value], self.panels[id(operand)], index)]

        if not along and self._ends_apart(operand):
            # The last word is not full, which would keep the others from being made in vectors.
            last = self.product.step.extent - 1
            full = Var(last)
            body = [For(full, copied(Expr.of(full))), *copied(Expr(last))]
            return [For(counter, body, upper=ends)]
        counts = copy_extents(operand, self.product.step, self.product.steps)
        step, steps = counted(counts, self.tiling.depth, upper)
        body = copied(step)
        return steps(rows(body)) if along else [For(counter, steps(body), upper=ends)]

    def _ends_apart(self, operand: Operand) -> bool:
        """Whether the last of all steps of an operand is made in another way than the others."""
        step = self.product.step
        if len(self.product.steps) > 1 or not self.frame.one_pass or step.extent < 3:
            return False
        last = Expr.of(step) // (step.extent - 1)
        ((atom, _),) = last.terms
        loads = [n for n in operand.nodes if isinstance(n, Load)]
        return any(a == atom for n in loads for e in n.index for a, _ in e.terms)

    def copy_columns(
        self, operand: Operand, first: Expr, extent: int, ends: tuple[Expr, ...]
    ) -> list[Node]:
        """Columns of a block side by side, as many as a tile has, for ``extent`` steps.

        Args:
            operand: what is copied.
            first: the first step.
            extent: how many steps, at most.
            ends: bounds of their number.
        """
        return mark_packing(self._copy_columns(operand, first, extent, ends))

    def _copy_columns(
        self, operand: Operand, first: Expr, extent: int, ends: tuple[Expr, ...]
    ) -> list[Node]:
        counts = copy_extents(operand, self.product.step, self.product.steps)
        steps_of = partial(counted, counts, extent, ends)
        if self.product.by_rows(operand):
            step, steps = steps_of()
            block = self.frame.column
            upper: tuple[Expr, ...]
            upper = () if block.extent % block.size == 0 else (block.remaining(),)
            counts = copy_extents(operand, self.product.column, self.product.columns)
            column, columns = counted(counts, block.size, upper)
            return steps(columns(self._copied(operand, column, first, step)))
        if self.product.steps_first(operand):
            assert not ends
            return self._transpose_columns(operand, first, extent)
        if operand.natural is not None:
            assert not ends
            return self._reorder_columns(operand, operand.natural)
        lanes = self.tiling.lanes
        panel, upper = self.frame.column.full_steps(lanes)
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
        begin, rest = self.frame.column.partial_step(lanes)
        if rest:
            lane = Var(rest)
            step, steps = steps_of()
            body = self._copied(operand, Expr.of(lane) + begin, first, step)
            out += self.frame.column.at_end(ordered(lambda b: [For(lane, b)], steps, body))
        return out

    def _transpose_columns(self, operand: Operand, first: Expr, extent: int) -> list[Node]:
        """As :meth:`copy_columns`, from memory in which steps are neighbours: square by square."""
        width = self.frame.width
        square, upper = self.frame.column.full_steps(width)
        out: list[Node] = []
        if square.extent:
            columns = Expr.of(square) * width
            parts = self._in_squares(
                extent, lambda a, step: self._copied(operand, columns + a, first, step)
            )
            out += [For(square, [part], upper=upper) for part in parts]
        begin, rest = self.frame.column.partial_step(width)
        if rest:
            a, step = Var(rest), Var(extent)
            body = self._copied(operand, Expr.of(a) + begin, first, Expr.of(step))
            out += self.frame.column.at_end([For(a, [For(step, body)])])
        return out

    def _in_squares(self, extent: int, element: Callable[[Var, Expr], list[Node]]) -> list[Node]:
        """Loops over the steps of as many columns as a vector has lanes: squares, then the rest.

        Args:
            extent: how many steps.
            element: what is done for a column and a step.
        """
        width = self.frame.width
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
        width, extent = self.frame.width, self.product.step.extent
        rows = self.frame.local((extent, width), operand.value.type)
        loops = [Var(v.extent) for v in self.product.steps]
        number = natural = Expr(0)
        for var, stride in zip(loops, self.product.strides, strict=True):
            number = number * var.extent + var
            natural = natural + Expr.of(var) * stride
        square, upper = self.frame.column.full_steps(width)
        first = Expr.of(square) * width
        out: list[Node] = []

        def transposed(a: Var, step: Expr) -> list[Node]:
            body, value = self._load_natural(load, first + a, step)
            return [*body, self.frame.store(value, rows, (step, Expr.of(a)))]

        if square.extent:
            inner = self._in_squares(extent, transposed)
            a = Var(width)
            body: list[Node] = []
            value = self.frame.load(body, rows, (natural, Expr.of(a)))
            body.append(self._panel_store(operand, value, first + a, number))
            inner += around(loops, [For(a, body)])
            out.append(For(square, inner, upper=upper))
        begin, rest = self.frame.column.partial_step(width)
        if rest:
            a = Var(rest)
            body, value = self._load_natural(load, Expr.of(a) + begin, natural)
            body.append(self._panel_store(operand, value, Expr.of(a) + begin, number))
            out += self.frame.column.at_end([For(a, around(loops, body))])
        return out

    def _load_natural(self, load: Load, column: Expr, step: Expr) -> tuple[list[Node], Value]:
        """A load at a column of the block, and what it loads."""
        at = {self.product.column: self.frame.column.begin + column, self.product.step: step}
        values: dict[Value, Value] = {}
        body = clone([load], values, {**self.frame.place, **at})
        return body, values[load.result]

    def _copied(self, operand: Operand, column: Expr, first: Expr, step: Expr) -> list[Node]:
        """Copies one element to its panel; ``column`` counts from the block's first one."""
        at = {
            self.product.column: self.frame.column.begin + column,
            self.product.step: first + step,
        }
        values: dict[Value, Value] = {}
        body = clone(operand.nodes, values, {**self.frame.place, **at})
        body.append(self._panel_store(operand, values[operand.value], column, step))
        return body

    def _panel_store(self, operand: Operand, value: Value, column: Expr, step: Expr) -> Store:
        """Stores an element of a column of the block in its panel."""
        index: tuple[Expr, ...] = (step, column)
        if not self.product.by_rows(operand):
            index = (column // self.tiling.lanes, step, column % self.tiling.lanes)
        return self.frame.store(value, self.panels[id(operand)], index)
