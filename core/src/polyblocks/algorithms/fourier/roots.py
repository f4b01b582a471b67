"""Roots of unity, rounded once: computed in float64 from an angle below an eighth of a turn."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def root(k: int, n: int) -> tuple[float, float]:
    """Cosine and sine of ``2 pi k / n``; multiples of a quarter turn are exact."""
    k %= n
    # In eighths of a turn: the angle is (octant + rest / n) / 8.
    octant, rest = divmod(8 * k, n)
    if octant % 2:
        rest = n - rest
    angle = math.pi / 4 * (rest / n)
    c, s = math.cos(angle), math.sin(angle) if rest < n else math.cos(angle)
    if octant % 4 in (1, 2):
        c, s = s, c
    if octant in (2, 3, 4, 5):
        c = -c
    if octant >= 4:
        s = -s
    return c, s


def roots(turns: np.ndarray[Any, Any], n: int) -> np.ndarray[Any, Any]:
    """``exp(2 pi i t / n)`` of every t of an array of integers, complex128 of its shape."""
    turns = np.asarray(turns, np.int64) % n
    octant, rest = np.divmod(8 * turns, n)
    rest = np.where(octant % 2 == 1, n - rest, rest)
    angle = np.pi / 4 * (rest / n)
    c = np.cos(angle)
    s = np.where(rest < n, np.sin(angle), c)
    swapped = (octant % 4 == 1) | (octant % 4 == 2)
    c, s = np.where(swapped, s, c), np.where(swapped, c, s)
    c = np.where((octant >= 2) & (octant <= 5), -c, c)
    s = np.where(octant >= 4, -s, s)
    return c + 1j * s
