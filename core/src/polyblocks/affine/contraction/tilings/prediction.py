"""Predicted cost of a tiled contraction, from the numbers that chose its tiling."""

from __future__ import annotations

from dataclasses import replace

from polyblocks.affine.contraction.tilings.choice import Tiled
from polyblocks.affine.cost import rates
from polyblocks.affine.cost.estimate import COMPUTE, LAUNCH, Estimate
from polyblocks.target import TargetDescription


def predicted(loops: Estimate, tiled: Tiled, target: TargetDescription) -> Estimate:
    """The estimate of a contraction in tiles.

    Args:
        loops: that of its loops before; work and compulsory bytes stay.
        tiled: its product and its tiling.
        target: the chip.
    """
    cost, tiling, compute = tiled.cost, tiled.tiling, tiled.seconds
    if compute is not None and tiling.threads > 1:
        # To start them is the launch's time.
        compute -= cost.core.start * (cost.core.seconds or 0.0)
    threads = min(tiling.threads, cost.pieces(tiling))
    moved = dict.fromkeys(loops.bytes, 0)
    far = [level.name for level in target.memory if loops.bytes[level.name]]
    for level, nbytes in zip(target.memory, cost.bytes(tiling), strict=False):
        moved[level.name] = nbytes
    # Operands and results come from where they are found, once.
    moved[far[-1]] = max(moved[far[-1]], loops.floor_bytes)
    return _timed(replace(loops, moved_bytes=moved[far[-1]]), moved, compute, threads, target)


def predicted_in_tiles(
    loops: Estimate,
    rest: Estimate,
    tiled: Tiled,
    runs: int,
    threads: int,
    target: TargetDescription,
) -> Estimate:
    """The estimate of a nest whose tiles have a contraction in tiles of its own.

    Args:
        loops: that of the nest before, on one thread; of it stay work and compulsory bytes, and
            what comes from memory that threads share.
        rest: that of the nest without the contraction, on one thread.
        tiled: the contraction in one of the nest's tiles.
        runs: tiles of the nest.
        threads: that share them.
        target: the chip.
    """
    moved = dict(loops.bytes)
    private = [level for level in target.memory if level.shared_by == 1]
    for level, nbytes in zip(private, tiled.cost.bytes(tiled.tiling), strict=False):
        moved[level.name] = rest.bytes[level.name] + runs * nbytes
    compute = None
    if tiled.seconds is not None:
        compute = rest.seconds[COMPUTE] / threads + -(-runs // threads) * tiled.seconds
    return _timed(loops, moved, compute, threads, target)


def _timed(
    loops: Estimate,
    moved: dict[str, int],
    compute: float | None,
    threads: int,
    target: TargetDescription,
) -> Estimate:
    """An estimate with the times of moved bytes and arithmetic on ``threads`` threads."""
    seconds: dict[str, float] = {}
    for level in target.memory:
        rate = rates.bandwidth(target, level, threads)
        if rate is not None:
            seconds[level.name] = moved[level.name] / rate
    if compute is not None:
        seconds[COMPUTE] = compute
    launch = target.shared_level.overhead if threads > 1 else 0.0
    bound, time = None, None
    if not rates.unknown_rates(target):
        bound = max(seconds, key=lambda name: seconds[name])
        time = seconds[bound] + launch
    return replace(
        loops,
        bytes=moved,
        seconds=seconds | {LAUNCH: launch},
        predicted_seconds=time,
        bound=bound,
    )
