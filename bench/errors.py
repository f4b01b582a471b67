"""How far a result is from what it should be."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

#: Half a unit in the last place of a float32 near 1: an error below it is rounding alone.
ROUNDING = 2.0**-24


def max_error(result: Array, expected: Array, branches: float = 0.0) -> float:
    """Largest difference, relative to the largest expected magnitude where that is above 1.

    Args:
        result: what was computed, of any dtype.
        expected: the same in float64.
        branches: part of the elements, those that are off the most, which do not count.

    Returns:
        The error; infinite if the shapes differ or the result holds a NaN where none is expected.
    """
    if result.shape != expected.shape:
        return math.inf
    if expected.size == 0:
        return 0.0
    differences = np.abs(result.astype(np.float64) - expected).ravel()
    last = differences.size - 1 - int(branches * differences.size)
    if not np.isfinite(differences).all():
        return math.inf
    off = float(np.partition(differences, last)[last] if branches else differences.max())
    scale = max(1.0, float(np.abs(expected).max()))
    return off / scale


def as_good_as(error: float, reference: float) -> bool:
    """Whether an error is within twice the reference's own, or is rounding alone."""
    return error <= max(2 * reference, ROUNDING)
