"""How far a result is from what it should be."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

#: Half a unit in the last place of a float32 near 1: an error below it is rounding alone.
ROUNDING = 2.0**-24


def max_error(result: Array, expected: Array) -> float:
    """Largest difference, relative to the largest expected magnitude where that is above 1.

    Args:
        result: what was computed, of any dtype.
        expected: the same in float64.

    Returns:
        The error; infinite if the shapes differ or the result holds a NaN where none is expected.
    """
    if result.shape != expected.shape:
        return math.inf
    if expected.size == 0:
        return 0.0
    off = float(np.abs(result.astype(np.float64) - expected).max())
    scale = max(1.0, float(np.abs(expected).max()))
    return off / scale if math.isfinite(off) else math.inf


def as_good_as(error: float, reference: float) -> bool:
    """Whether an error is within twice the reference's own, or is rounding alone."""
    return error <= max(2 * reference, ROUNDING)
