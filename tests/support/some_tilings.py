"""Tilings that no model would choose, to try what builds them."""

from __future__ import annotations

import random

from polyblocks.affine.contraction.tiling import Tiling
from polyblocks.affine.contraction.tilings.tiling_cost import TilingCost


def tiling_of(cost: TilingCost, draw: random.Random) -> Tiling:
    """Some tiling that a product can have."""
    product, width = cost.product, cost.width
    rows, columns, steps = (v.extent for v in (product.row, product.column, product.step))
    height = draw.randint(1, min(rows, 6))
    lanes = width * draw.choice([1, 2])
    inner = product.steps[-1].extent if len(product.steps) > 1 else 1
    depth = draw.choice([steps, max(1, steps // 3 // inner) * inner])
    if product.windows is not None:
        # Rows are in one loop, and all steps in one pass.
        run = product.windows.run
        height = draw.choice([h for h in range(1, 7) if run % h == 0])
        depth = steps
    chain = draw.choice([depth, max(1, depth // 2)])
    if cost.unit is not None:
        # All passes are of as many steps, and no sums wait within one.
        height = draw.randint(1, min(rows, 40 if lanes == width else 32))
        depth = chain = draw.choice([d for d in range(1, steps + 1) if steps % d == 0][-3:])
    whole = len(product.columns) > 1 and (cost.by_rows or product.waits)
    column_block = columns
    if not whole and draw.random() < 0.7:
        column_block = min(columns, lanes * draw.randint(1, 3))
    row_block = min(rows, height * draw.randint(1, 4))
    row_pieces = draw.randint(1, -(-rows // row_block))
    column_pieces = draw.randint(1, -(-columns // column_block))
    return Tiling(
        rows=height,
        lanes=lanes,
        depth=depth,
        chain=chain,
        row_block=row_block,
        column_block=column_block,
        row_pieces=row_pieces,
        column_pieces=column_pieces,
        pack_rows=product.windows is None and draw.random() < 0.5,
        pack_columns=not cost.in_place or draw.random() < 0.5,
        threads=draw.randint(1, cost.available or 3),
    )
