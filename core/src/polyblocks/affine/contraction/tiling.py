"""How a contraction is cut: register tile, blocks for caches, pieces for threads, copies."""

from __future__ import annotations

from typing import NamedTuple

from polyblocks.affine.contraction.products.flat_product import FlatProduct
from polyblocks.affine.plan.tiles import Tiles


class Tiling(NamedTuple):
    """The sizes of a tiled contraction; what does not divide is done by smaller tiles.

    Attributes:
        rows, lanes: the register tile, M x N; N is in lanes.
        depth: steps of the reduction in one pass; partial results wait in a buffer if there are
            more.
        chain: steps whose sums are added up before they are added to others; rounding errors grow
            with the length of such chains. ``depth`` if there is no need.
        row_block, column_block: rows and columns that are worked on together; multiples of the
            register tile's, or all.
        row_pieces, column_pieces: pieces for threads, of whole blocks.
        pack_rows, pack_columns: whether operands that could be used in place are copied in the
            order in which they are used.
        threads: how many threads share the pieces.
    """

    rows: int
    lanes: int
    depth: int
    chain: int
    row_block: int
    column_block: int
    row_pieces: int
    column_pieces: int
    pack_rows: bool
    pack_columns: bool
    threads: int

    @property
    def tiles(self) -> Tiles:
        """The sizes that schedules of blocks of threads have as well."""
        sizes = (self.rows, self.lanes), (self.row_block, self.column_block)
        return Tiles(*sizes, self.depth)

    @property
    def chained(self) -> bool:
        """Whether sums of a pass are added up in parts."""
        return self.chain < self.depth

    def by_pass(self, product: FlatProduct) -> bool:
        """Whether columns are copied for each pass: there are no other rows to use them again."""
        blocks = -(-product.row.extent // self.row_block)
        if -(-blocks // self.row_pieces) > 1:
            return False
        columns = [o for o in product.operands if not o.of_rows]
        if self.depth < product.step.extent and any(o.natural is not None for o in columns):
            # All steps are put into another order at once.
            return False
        # Squares are transposed whole.
        squares = any(product.steps_first(o) for o in columns)
        return not squares or product.step.extent % self.depth == 0
