"""The cost of a contraction without tiles: each result is the dot product of two rows."""

from __future__ import annotations

from math import prod

from polyblocks.affine.access import address
from polyblocks.affine.analysis.contractions import Contraction
from polyblocks.affine.analysis.reductions import rows_at_once
from polyblocks.affine.cost import rates
from polyblocks.affine.model import Load
from polyblocks.target import TargetDescription

#: Vectors in a row, at least: the sum over the lanes of a result takes as long as some of them.
MIN_VECTORS = 4


def dot_seconds(
    contraction: Contraction, target: TargetDescription, threads: int | None
) -> float | None:
    """Predicted time of a product of matrices whose rows, both, lie along the steps.

    Nothing is packed. A step loads an element of one row, and for a few rows at once one of the
    other, from the nearest cache at best.

    Args:
        contraction: the product.
        target: the chip.
        threads: threads for it; None for all that there are.

    Returns:
        None for other contractions, or if the target's rates are unknown.
    """
    if not contraction.multiplies_once or len(contraction.operands) != 2:
        return None
    loads = [n for operand in contraction.operands for n in operand.nodes]
    (step, *more) = [loop.var for loop in contraction.reduction.loops]
    if more or not target.vector_bits or not target.memory:
        return None
    nbytes = 0.0
    for load in loads:
        if not isinstance(load, Load) or load.where:
            return None
        if address(load.buffer, load.index).coefficient(step) != 1:
            return None
        nbytes += load.buffer.bytes_per_element
    lanes = int(target.vector_bits * len(loads) / (8 * nbytes))
    if step.extent < MIN_VECTORS * lanes:
        return None
    width = nbytes / (4 * len(loads))
    team = threads or target.shared_level.size
    outer = (contraction.batch, contraction.rows, contraction.columns)
    steps = step.extent * prod(v.extent for side in outer for v in side)
    few = min(prod(v.extent for v in side) for side in outer[1:])
    nbytes = nbytes * (1 + 1 / rows_at_once(few)) / 2
    nearest = rates.bandwidth(target, target.memory[0], team)
    compute = rates.compute_seconds(target, steps * width)
    if nearest is None or compute is None:
        return None
    return rates.overlapped(steps * nbytes / nearest, compute * target.shared_level.size / team)
