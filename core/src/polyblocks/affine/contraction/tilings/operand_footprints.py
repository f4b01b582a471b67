"""Cache lines and cache sets of operands that are used in place, and bytes of results."""

from __future__ import annotations

from math import gcd

from polyblocks.affine.access import address
from polyblocks.affine.analysis.contractions import Operand
from polyblocks.affine.contraction.copies import elements_apart
from polyblocks.affine.contraction.products.flat_product import FlatProduct
from polyblocks.affine.contraction.products.windows import innermost
from polyblocks.affine.cost.constants import CACHE_WAYS
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import AffineAccess, Buffer, Load
from polyblocks.target import MemoryLevel, TileUnit


class OperandFootprints:
    """Memory that the unpacked operands along M touch. Every tiling asks, so answers are kept.

    Args:
        product: whose operands they are.
        l1: the first cache.
        size: bytes of an element.
    """

    def __init__(self, product: FlatProduct, l1: MemoryLevel, size: int) -> None:
        self._product = product
        self._l1 = l1
        self._size = size
        self._strides: dict[Operand, tuple[int, int]] = {}
        self._spans: dict[tuple[int, int], int] = {}

    def conflicts(self, operand: Operand, rows: int) -> bool:
        """Whether ``rows`` rows have set conflicts in the first cache, or are not in order."""
        assert operand.in_place is not None
        product = self._product
        if product.windows is None:
            (place,) = operand.in_place.index
            if place.coefficient(product.step) != 1:
                return True
        if isinstance(product.unit, TileUnit):
            # It takes whole lines, once.
            return False
        row, step = self._bytes_apart(operand)
        if self._overfills(row, rows):
            return True
        # Lines that are used by one row in one step, and in a later one again.
        inner = 0 if product.windows is None else product.windows.steps[-1]
        return row >= self._l1.line and self._overfills(step, inner)

    def span(self, rows: int, depth: int) -> int:
        """Bytes from the first to the last that ``rows`` rows in windows use in ``depth`` steps."""
        if (rows, depth) not in self._spans:
            windows = self._product.windows
            extents = None if windows is None else innermost(windows.steps, depth)
            assert extents is not None
            step = Expr(0)
            for extent in extents:
                step = step * extent + Var(extent)
            values = {v: Expr(0) for v in self._product.batch}
            values |= {self._product.row: Expr.of(Var(rows)), self._product.step: step}
            nbytes = 0
            for load in self._loads():
                low, high = address(load.buffer, load.index).substitute(values).range()
                nbytes += (high - low + 1) * self._size
            self._spans[rows, depth] = nbytes
        return self._spans[rows, depth]

    def lines(self, rows: int, depth: int) -> tuple[float, int]:
        """Lines of rows in windows that a step uses, and bytes that ``depth`` steps do."""
        windows = self._product.windows
        if windows is None or innermost(windows.steps, depth) is None:
            return 0.0, 0
        line, each = self._l1.line, 0
        for operand in self._product.operands:
            if operand.of_rows and operand.in_place is not None:
                row, step = self._bytes_apart(operand)
                in_lines = -(-(rows - 1) * min(row, line) // line + 1) * line
                each += min(in_lines, rows * max(step, self._size))
        touched = min(depth * each, self.span(rows, depth))
        return touched / depth / line, touched

    def _loads(self) -> list[Load]:
        return [o.in_place for o in self._product.operands if o.of_rows and o.in_place is not None]

    def _bytes_apart(self, operand: Operand) -> tuple[int, int]:
        """Bytes between rows of an operand, and between its steps."""
        if operand not in self._strides:
            row, step = (
                self._size * (elements_apart(operand, v) or 0)
                for v in (self._product.row, self._product.step)
            )
            self._strides[operand] = row, step
        return self._strides[operand]

    def _overfills(self, stride: int, count: int) -> bool:
        """Whether ``count`` lines, ``stride`` bytes apart, overfill their cache sets."""
        ways = self._l1.associativity or CACHE_WAYS
        way = max(self._l1.size // ways, 1)
        shared = gcd(stride, way)
        return shared >= self._l1.line and count * shared > way * ways // 2


def result_traffic(product: FlatProduct) -> tuple[int, int]:
    """Bytes that the epilogue moves for each result, and those of all the buffers it does so in."""
    each: dict[Buffer, int] = {}
    for node in (*product.before, *product.after):
        if isinstance(node, AffineAccess):
            variables = {v for e in node.index for v in e.variables()}
            if {product.row, product.column} <= variables:
                # A line is read before it is written.
                times = 1 if isinstance(node, Load) else 2
                size = times * node.buffer.bytes_per_element
                each[node.buffer] = each.get(node.buffer, 0) + size
    return sum(each.values()), sum(b.numel * b.bytes_per_element for b in each)
