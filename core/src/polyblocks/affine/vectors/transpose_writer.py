"""Writes a square tile in vectors; those across are transposed in registers."""

from __future__ import annotations

from typing import Any

from polyblocks.affine.expr import Expr
from polyblocks.affine.model import AnyStore, For, Load, Store, Value
from polyblocks.affine.vectors.interleaves import Interleave
from polyblocks.affine.vectors.lanes import lanes_of
from polyblocks.affine.vectors.turns import deinterleave
from polyblocks.affine.vectors.vector_bodies import Frame, ScalarWriter, VectorBody
from polyblocks.affine.vectors.vector_ops import alignment, index_op, shuffle
from polyblocks.mlir import ir


def write_square(writer: ScalarWriter, loop: For) -> Any:
    """Write the loop and the one in it, both as long as a vector; returns the first operation."""
    (inner,) = loop.body
    assert isinstance(inner, For)
    return _SquareWriter(writer, loop, inner).write()


class _SquareWriter(Frame):
    """Lanes run along the inner loop; the outer one is unrolled."""

    def __init__(self, writer: ScalarWriter, outer: For, inner: For) -> None:
        assert outer.simd is not None
        super().__init__(writer, inner, outer.simd.width, lanes_of(inner, outer.var))
        self.outer = outer
        #: Results of a load across, by iteration of the outer loop.
        self.columns: dict[Value, list[Any]] = {}
        #: Vectors of interleaved loads across, by iteration of the inner loop and by place.
        self.parts: dict[Interleave, list[list[Any]]] = {}

    def write(self) -> Any:
        self.mark()
        self.prepare()
        self.with_streams(self._tile)
        return self.first

    def _tile(self) -> None:
        rows: dict[int, list[Any]] = {}
        self.parts.clear()
        for node in self.lanes.crossed:
            if node in self.lanes.crossed_groups:
                assert isinstance(node, Load)
                group, place = self.lanes.crossed_groups[node]
                self.columns[node.result] = transpose([r[place] for r in self._parts(group)])
            elif isinstance(node, Load):
                self.columns[node.result] = transpose([self._across(node, k) for k in self.steps])
            else:
                rows[id(node)] = []
        for m in self.steps:
            _SquareBody(self, m, rows).run([])
        for node in self.lanes.crossed:
            if isinstance(node, Store):
                for k, row in enumerate(transpose(rows[id(node)])):
                    self.store_vector(node, row, [self.place(e, 0, k) for e in node.index])

    @property
    def steps(self) -> range:
        """Iterations of either loop."""
        return range(self.width)

    def fixed(self, expr: Expr) -> Expr:
        factor = expr.coefficient(self.outer.var) or 0
        return super().fixed(expr) - Expr(0, {self.outer.var: factor})

    def place(self, expr: Expr, m: int, k: int) -> Any:
        """An index at iteration ``m`` of the outer and ``k`` of the inner loop."""
        moved = m * (expr.coefficient(self.outer.var) or 0)
        moved += k * (expr.coefficient(self.loop.var) or 0)
        base = self.fixed(expr)
        if base.is_constant:
            return self.number(base.const + moved)
        if not moved:
            return self.bases[base]
        return index_op("arith.addi", self.bases[base], self.number(moved))

    def _parts(self, group: Interleave) -> list[list[Any]]:
        """Vectors of interleaved loads, one for each place, in each step of the inner loop."""
        if group not in self.parts:
            node = group.first
            assert isinstance(node, Load)
            self.parts[group] = [
                deinterleave([self._across(node, k, n) for n in range(group.step)], self.width)
                for k in self.steps
            ]
        return self.parts[group]

    def _across(self, node: Load, k: int, number: int = 0) -> Any:
        """The vector along the outer loop at step ``k``, or the one ``number`` vectors further."""
        *outer, last = (self.place(e, 0, k) for e in node.index)
        if number:
            last = index_op("arith.addi", last, self.number(number * self.width))
        return ir.Operation.create(
            "vector.load",
            results=[self.vector(node.result.type)],
            operands=[self.writer.memref(node.buffer), *outer, last],
            attributes=alignment(node.buffer),
            loc=node.location or ir.Location.unknown(),
        ).results[0]


class _SquareBody(VectorBody):
    """One iteration of the outer loop, all of the inner one."""

    def __init__(self, owner: _SquareWriter, m: int, rows: dict[int, list[Any]]) -> None:
        super().__init__(owner, None, owner.width)
        self.square = owner
        self.m = m
        self.rows = rows

    def _at(self, expr: Expr) -> Any:
        return self.square.place(expr, self.m, 0)

    def load(self, node: Any) -> None:
        if node.result in self.square.columns:
            self.values[node.result] = self.square.columns[node.result][self.m]
        else:
            super().load(node)

    def store(self, node: AnyStore) -> None:
        if id(node) in self.rows:
            self.rows[id(node)].append(self.lanes(node.value))
        else:
            super().store(node)


def transpose(rows: list[Any]) -> list[Any]:
    """``result[i][j] = rows[j][i]`` of as many vectors as lanes, by swaps of ever smaller blocks.

    Each round exchanges the off-diagonal blocks of all 2 x 2 blocks of blocks; its shuffles move
    whole parts of registers, which most chips do in one instruction.
    """
    width = len(rows)
    half = width // 2
    while half:
        for i in range(width):
            if i & half:
                continue
            low, high = rows[i], rows[i + half]
            lanes = range(width)
            rows[i] = shuffle(low, high, [n if not n & half else width + n - half for n in lanes])
            rows[i + half] = shuffle(
                low, high, [n + half if not n & half else width + n for n in lanes]
            )
        half //= 2
    return rows
