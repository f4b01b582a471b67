"""The nodes of a contraction in tiles, if its columns can be lanes of vectors."""

from __future__ import annotations

from collections.abc import Mapping

from polyblocks.affine.contraction.absent import absent_of
from polyblocks.affine.contraction.builder import ContractionBuilder
from polyblocks.affine.contraction.kept_panels import KeptPanels
from polyblocks.affine.contraction.tile_prologue import Prologues
from polyblocks.affine.contraction.tilings.choice import Tiled
from polyblocks.affine.model import Buffer, For, Nest, Node, remove_dead, walk
from polyblocks.affine.padding.margins import Margin
from polyblocks.affine.vectors.lanes import lanes_of


def tiled_nodes(
    tiled: Tiled,
    nest: Nest,
    level: str | None,
    prologues: Prologues | None,
    margins: Mapping[Buffer, Margin],
) -> tuple[list[Node], KeptPanels | None]:
    """The nodes of a contraction in tiles, and the panels that are kept between calls.

    Args:
        tiled: the product and its tiling.
        nest: that the contraction is from.
        level: see :class:`ContractionBuilder`.
        prologues: code ahead, which may fill panels.
        margins: of the program's buffers.

    Raises:
        NoLanesError: something keeps columns from being lanes.
    """
    product, tiling = tiled.cost.product, tiled.tiling
    kept = None if prologues is None else KeptPanels(product, tiling, prologues, nest)
    absent = absent_of(product, margins)
    nodes = ContractionBuilder(product, tiling, tiled.cost.width, level, kept, absent).nodes()
    remove_dead(nodes)
    for node in walk(nodes):
        if isinstance(node, For) and node.lanes:
            lanes_of(node)
    return nodes, kept
