"""What a tiled contraction is predicted to cost, by the numbers by which its tiling was chosen."""

from __future__ import annotations

from dataclasses import replace

from polyblocks.affine.contraction.choice import Tiled
from polyblocks.affine.cost import rates
from polyblocks.affine.cost.estimate import COMPUTE, LAUNCH, Estimate
from polyblocks.target import TargetDescription


def predicted(loops: Estimate, tiled: Tiled, target: TargetDescription) -> Estimate:
    """The estimate of a contraction in tiles.

    Args:
        loops: that of its loops before, of which work and compulsory bytes stay.
        tiled: its product and its tiling.
        target: the chip.
    """
    cost, tiling = tiled.cost, tiled.tiling
    threads = min(tiling.threads, cost.pieces(tiling))
    moved = dict.fromkeys(loops.bytes, 0)
    far = [level.name for level in target.memory if loops.bytes[level.name]]
    for level, nbytes in zip(target.memory, cost.bytes(tiling), strict=False):
        moved[level.name] = nbytes
    # Operands and results come from where they are found, once.
    moved[far[-1]] = max(moved[far[-1]], loops.floor_bytes)
    seconds: dict[str, float] = {}
    for level in target.memory:
        rate = rates.bandwidth(target, level, threads)
        if rate is not None:
            seconds[level.name] = moved[level.name] / rate
    if tiled.seconds is not None:
        seconds[COMPUTE] = tiled.seconds
    launch = target.shared_level.overhead if threads > 1 else 0.0
    bound, time = None, None
    if not rates.unknown_rates(target):
        bound = max(seconds, key=lambda name: seconds[name])
        time = seconds[bound] + launch
    return replace(
        loops,
        moved_bytes=moved[far[-1]],
        bytes=moved,
        seconds=seconds | {LAUNCH: launch},
        predicted_seconds=time,
        bound=bound,
    )
