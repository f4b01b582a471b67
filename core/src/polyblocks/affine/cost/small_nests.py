"""Nests that take less time than to launch them."""

from __future__ import annotations

from polyblocks.affine.cost import rates
from polyblocks.affine.model import AffineAccess, For, Nest, Pure, walk_with_trips
from polyblocks.target import TargetDescription


def is_small(nest: Nest, target: TargetDescription) -> bool:
    """Whether a nest takes less time than to launch it."""
    seconds = seconds_of_small(nest, target)
    return seconds is not None and seconds < target.shared_level.overhead


def seconds_of_small(nest: Nest, target: TargetDescription) -> float | None:
    """Time that the whole chip takes for what a nest moves; None of one that is not simple."""
    moved = 0
    for node, trips in walk_with_trips(nest.body):
        if not isinstance(node, (For, Pure, AffineAccess)):
            return None
        if isinstance(node, For) and (node.bounded or node.unit or node.lanes):
            return None
        if isinstance(node, AffineAccess):
            moved += trips * node.buffer.bytes_per_element
    return rates.traffic_seconds(target, moved, moved) if moved else None
