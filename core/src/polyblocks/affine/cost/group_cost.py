"""Cost of a group of stages on a target, as tiles of threads or of blocks."""

from __future__ import annotations

from polyblocks.affine.cost.block_cost import BlockCost
from polyblocks.affine.cost.tile_cost import TileCost
from polyblocks.affine.expr import Expr
from polyblocks.affine.model import Buffer
from polyblocks.affine.tiles.fusion_stages import FusionStage
from polyblocks.affine.tiles.slices import Slices
from polyblocks.target import TargetDescription


def cost_of(
    target: TargetDescription, stages: list[FusionStage], found: Slices, local: set[Buffer]
) -> TileCost:
    """The model of a group on this target."""
    kind = BlockCost if target.has_shared_memory else TileCost
    return kind(target, stages, found, local)


def alone(target: TargetDescription, stage: FusionStage) -> float:
    """Seconds of one stage as a nest of its own."""
    found = Slices([])
    for node in stage.accesses:
        # A part of a buffer may be all that it touches.
        ranges = [
            (max(0, low), min(n - 1, high))
            for (low, high), n in zip(
                (e.range() for e in node.index), node.buffer.shape, strict=True
            )
        ]
        before = found.boxes.get(node.buffer)
        if before is not None:
            ranges = [
                (min(low, a.const), max(high, b.const))
                for (low, high), (a, b) in zip(ranges, before, strict=True)
            ]
        found.boxes[node.buffer] = [(Expr(low), Expr(high)) for low, high in ranges]
    return cost_of(target, [stage], found, set()).alone()
