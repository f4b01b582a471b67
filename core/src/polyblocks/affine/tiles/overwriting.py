"""Buffers of a tile whose elements take the place of those that they are computed of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from polyblocks.affine.model import Buffer
from polyblocks.affine.tiles.fusion_stages import FusionStage, lifetimes


def overwritten(
    stages: list[FusionStage], local: Set[Buffer], boxes: Mapping[Buffer, Sequence[Any]]
) -> dict[Buffer, Buffer]:
    """For each buffer that may be written over another one, which that is.

    A stage writes it element by element, and is the last one to read the other one, at the same
    place: the exponentials of scores, for one.

    Args:
        stages: of a tile, in order.
        local: buffers of the tile.
        boxes: the part of each buffer that a tile needs.
    """
    used = lifetimes(stages, set(local))
    found: dict[Buffer, Buffer] = {}
    for at, stage in enumerate(stages):
        if len(stage.stores) != 1 or not stage.body_is_flat or stage.gathered:
            continue
        (store,) = stage.stores
        new = store.buffer
        if new not in local or used[new][0] != at or len(new.shape) < 2:
            continue
        for old in dict.fromkeys(load.buffer for load in stage.loads):
            if old not in local or used[old][1] != at or old is new or old in found.values():
                continue
            if (old.element, old.shape) != (new.element, new.shape) or boxes[old] != boxes[new]:
                continue
            if all(n.index == store.index for n in stage.loads if n.buffer is old):
                found[new] = old
                break
    return found
