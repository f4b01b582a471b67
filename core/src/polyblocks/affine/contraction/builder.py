"""The loops of a tiled contraction.

For each piece that a thread computes, block of columns by block of columns, and in these block of
rows by block of rows: operands are copied into panels in the order of their use, and a register
tile's rows and lanes go through the steps of the reduction together. Loops have bounds where blocks
do not divide; what is left of rows and columns is a tile of its own.
"""

from __future__ import annotations

from polyblocks.affine.access import address
from polyblocks.affine.analysis.contractions import Operand
from polyblocks.affine.analysis.dataflow import ops_of
from polyblocks.affine.analysis.known_values import CASTS
from polyblocks.affine.contraction.absent import Absent
from polyblocks.affine.contraction.frame import Frame, like
from polyblocks.affine.contraction.kept_panels import KeptPanels
from polyblocks.affine.contraction.partial_results import PartialResults
from polyblocks.affine.contraction.products.flat_product import FlatProduct
from polyblocks.affine.contraction.register_tile import RegisterTiles, Rows, StepCode
from polyblocks.affine.contraction.staging import Staging
from polyblocks.affine.contraction.tiling import Tiling
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    Buffer,
    For,
    Node,
    Store,
    clone,
)
from polyblocks.affine.padding.margins import is_zero
from polyblocks.affine.subnests import mark_tiles

#: Nodes behind the reduction above which a tile's rows go through them one after the other: copies
#: of long code for every row take longer to compile than they spare.
LONG = 16


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
        product: FlatProduct,
        tiling: Tiling,
        width: int,
        level: str | None,
        kept: KeptPanels | None = None,
        absent: Absent | None = None,
    ) -> None:
        self.level = level
        self.product = product
        self.tiling = tiling
        self.frame = Frame(product, tiling, width, level is None)
        copied = [o for o in product.operands if self._is_copied(o)]
        for operand in copied:
            if operand.kept and kept is not None:
                kept.add(operand)
        self.staging = Staging(self.frame, [o for o in copied if not o.kept])
        self.partial = PartialResults(self.frame)
        one_by_one = not self.partial and len(product.after) > LONG
        self.sums: list[Buffer] = []
        stored_later = self.frame.in_tiles and not self._stored_at_once()
        if tiling.chained or one_by_one or stored_later:
            tile = tiling.rows, tiling.lanes
            self.sums = [self.frame.local(tile, r.type) for r in product.results]
        self.operands = StepCode(self.frame, self.staging, kept)
        self.tiles = RegisterTiles(
            self.frame, self.operands, self.partial, self.sums, one_by_one, absent
        )

    def _is_copied(self, operand: Operand) -> bool:
        """Whether an operand is used from a panel, or kept in one."""
        tiling = self.tiling
        packed = tiling.pack_rows if operand.of_rows else tiling.pack_columns or operand.kept
        # A unit's tiles are lines of memory.
        scattered = self.frame.in_tiles and not self.product.in_lines(operand)
        return operand.in_place is None or packed or scattered

    def nodes(self) -> list[Node]:
        """The nest."""
        of_rows = [o for o in self.product.operands if id(o) in self.staging.panels and o.of_rows]
        others = [
            o for o in self.product.operands if id(o) in self.staging.panels and not o.of_rows
        ]
        copies: list[Node] = []
        if not self.frame.by_pass:
            everything = (Expr(0), self.product.step.extent, ())
            copies = [node for o in others for node in self.staging.copy_columns(o, *everything)]
        inner: list[Node] = (
            self.partial.start() if self.partial and not self.partial.joined_once else []
        )
        inner += self._passes(of_rows, others if self.frame.by_pass else [])
        if self.partial:
            inner += self.partial.finish()
        body = self.frame.column.around([*copies, *self.frame.row.around(inner)])
        if self.frame.turn.extent > 1:
            even = self.frame.over[0].range()[0] >= self.frame.turn.extent
            body = [For(self.frame.turn, body, upper=() if even else self.frame.over)]
        level = self.level if self.frame.thread.extent > 1 else None
        body = [For(self.frame.thread, [*self.frame.allocas, *body], level=level)]
        mark_tiles(body)
        return body

    def _passes(self, rows: list[Operand], columns: list[Operand]) -> list[Node]:
        """All passes over a block's steps, for which these operands are copied."""
        extent, depth = self.product.step.extent, self.tiling.depth
        number = Var(-(-extent // depth))
        first = Expr.of(number) * depth
        upper = (Expr(extent) - first,) if extent % depth else ()
        body: list[Node] = [
            node for o in columns for node in self.staging.copy_columns(o, first, depth, upper)
        ]
        body += [node for o in rows for node in self.staging.copy_rows(o, first, upper)]
        body += self._kernels(first, upper)
        return body if number.extent == 1 else [For(number, body)]

    def _kernels(self, first: Expr, upper: tuple[Expr, ...]) -> list[Node]:
        """The register tiles of a block: whole ones, and what is left of columns."""
        if self.frame.in_tiles:
            assert not upper
            # Those of the same rows one after the other: a unit is so fast that results have to go
            # to memory line by line.
            return self.frame.in_heights(
                lambda begin, height: self.frame.in_panels(
                    lambda panel, count: self._unit_tile(begin, height, panel, count, first)
                )
            )
        return self.frame.in_panels(lambda panel, count: [self._lanes(panel, count, first, upper)])

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
        (zero,) = self.tiles.zeros()
        carried, found = (like(product.results) for _ in range(2))
        place = begin + row
        tile = Rows([place], panel, column, panel * self.tiling.lanes + column, [{}])
        body: list[Node] = []
        at = first + step
        after = self.operands.step(tile, at, Expr.of(step), {0: carried}, body)[0]
        steps = For(step, body, [zero.results[0]], carried, found, after)
        if not self.sums:
            values = dict(zip(product.results, found, strict=True))
            stored = clone(product.after, values, self.frame.at(place, tile.column))
            return [For(row, [For(column, [zero, steps, *stored])], unit=product.unit.name)]
        (sums,) = self.sums
        waits = Store(found[0], sums, (Expr.of(row), Expr.of(column)))
        unit = For(row, [For(column, [zero, steps, waits])], unit=product.unit.name)
        lane, bound = _lane(count)
        rows = [begin + number for number in range(height)]
        behind = Rows(rows, panel, lane, panel * self.tiling.lanes + lane, [])
        return [
            unit,
            For(lane, self.tiles.rows_behind(behind, []), upper=bound, lanes=self.tiling.lanes),
        ]

    def _lanes(self, panel: Expr, count: int, first: Expr, upper: tuple[Expr, ...]) -> For:
        """All rows of a block for the columns of one panel."""
        lane, bound = _lane(count)
        body: list[Node] = []
        excess = self.tiles.excess(panel, lane, first, upper, body)

        def tile(begin: Expr, height: int) -> list[Node]:
            rows = [begin + r for r in range(height)]
            return self.tiles.tile(rows, panel, lane, first, upper, excess)

        body += self.frame.in_heights(tile)
        return For(lane, body, upper=bound, lanes=self.tiling.lanes)

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


def _lane(count: int) -> tuple[Var, tuple[Expr, ...]]:
    """Variable over ``count`` columns of a register tile, and its bound.

    A variable with one value would be none, and nothing a lane.
    """
    return Var(max(2, count)), (Expr(1),) if count == 1 else ()
