"""The nodes of a contraction in tiles, if its columns can be lanes of vectors."""

from __future__ import annotations

from polyblocks.affine.contraction.absent import Absent
from polyblocks.affine.contraction.builder import ContractionBuilder
from polyblocks.affine.contraction.choice import Tiled
from polyblocks.affine.contraction.kept_panels import KeptPanels
from polyblocks.affine.model import For, Node, remove_dead, walk
from polyblocks.affine.vectors.lanes import lanes_of


def tiled_nodes(
    tiled: Tiled, level: str | None, kept: KeptPanels | None, absent: Absent | None
) -> list[Node]:
    """The nodes of a contraction in tiles.

    Args:
        tiled: the product and its tiling.
        level: see :class:`ContractionBuilder`.
        kept: see there; panels are added to it.
        absent: see there.

    Raises:
        NoLanesError: something keeps columns from being lanes.
    """
    product, tiling = tiled.cost.product, tiled.tiling
    nodes = ContractionBuilder(product, tiling, tiled.cost.width, level, kept, absent).nodes()
    remove_dead(nodes)
    for node in walk(nodes):
        if isinstance(node, For) and node.lanes:
            lanes_of(node)
    return nodes
