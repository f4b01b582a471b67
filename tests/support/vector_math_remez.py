"""Minimax polynomials by the Remez exchange algorithm, in 60-digit arithmetic.

E. Remez, C. R. Acad. Sci. 199 (1934); J.-M. Muller, "Elementary Functions", 3rd ed., section 3.5.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from mpmath import mp, mpf

mp.dps = 60


@dataclass(frozen=True)
class Spec:
    """One polynomial.

    Attributes:
        name: its name in coefficients.py; the suffix tells the precision.
        about: the comment written above it.
        function: what is approximated, in mpmath numbers.
        weight: multiplies the error; the minimax norm is ``weight * (p - f)``.
        low, high: the interval.
        degree: of the polynomial.
    """

    name: str
    about: str
    function: Callable[[mpf], mpf]
    weight: Callable[[mpf], mpf]
    low: mpf
    high: mpf
    degree: int

    @property
    def precision(self) -> str:
        return "f32" if self.name.endswith("_F32") else "f64"


def rounded(value: mpf, precision: str) -> float:
    """``value`` rounded to f32 or f64 (f32 through f64: the tables do not need better)."""
    number = float(value)
    if precision == "f32":
        number = struct.unpack("<f", struct.pack("<f", number))[0]
    return number


def polynomial(coefficients: list[mpf], x: mpf) -> mpf:
    result = mpf(0)
    for coefficient in reversed(coefficients):
        result = result * x + coefficient
    return result


def remez(spec: Spec) -> tuple[list[mpf], mpf]:
    """Minimax coefficients in the monomial basis and the largest weighted error."""
    count = spec.degree + 2
    points = 24 * count
    centre, half = (spec.high + spec.low) / 2, (spec.high - spec.low) / 2
    # Chebyshev nodes: dense at the ends, and never a point where the weight vanishes.
    grid = [centre - half * mp.cos(mp.pi * (i + 0.5) / points) for i in range(points)]
    values = [spec.function(x) for x in grid]
    weights = [spec.weight(x) for x in grid]
    chosen = [round(i * (points - 1) / (count - 1)) for i in range(count)]
    coefficients: list[mpf] = []
    worst = mpf(0)
    for _ in range(12):
        # Solved in the variable t of [-1, 1] for conditioning, then expanded to powers of x.
        matrix = mp.matrix(count, count)
        right = mp.matrix(count, 1)
        for row, index in enumerate(chosen):
            t = (grid[index] - centre) / half
            power = mpf(1)
            for column in range(count - 1):
                matrix[row, column] = power * weights[index]
                power *= t
            matrix[row, count - 1] = (-1) ** row
            right[row] = values[index] * weights[index]
        solution = mp.lu_solve(matrix, right)
        in_t = [solution[i] for i in range(count - 1)]
        level = abs(solution[count - 1])
        errors = [
            weight * (polynomial(in_t, (x - centre) / half) - value)
            for x, value, weight in zip(grid, values, weights, strict=True)
        ]
        worst = max(abs(error) for error in errors)
        coefficients = in_t
        if worst <= level * mpf("1.001"):
            break
        # Exchange: the largest error of every run of one sign.
        extrema: list[int] = []
        for index, error in enumerate(errors):
            if extrema and (errors[extrema[-1]] > 0) == (error > 0):
                if abs(error) > abs(errors[extrema[-1]]):
                    extrema[-1] = index
            else:
                extrema.append(index)
        while len(extrema) > count:
            drop_first = abs(errors[extrema[0]]) < abs(errors[extrema[-1]])
            extrema.pop(0 if drop_first else -1)
        if len(extrema) < count:
            break
        chosen = extrema
    return shift(coefficients, centre, half), worst


def polished(spec: Spec, coefficients: list[mpf]) -> list[float]:
    """The coefficients rounded to the working precision, then moved to nearby numbers.

    Rounding one by one loses up to three bits in float32. A search over steps of one unit in the
    last place, of one coefficient or of two, brings most of it back.
    """
    best = np.array([rounded(c, spec.precision) for c in coefficients])
    if spec.precision != "f32":
        return [float(c) for c in best]
    points = 400
    grid = [
        (spec.high + spec.low) / 2 - (spec.high - spec.low) / 2 * mp.cos(mp.pi * (i + 0.5) / points)
        for i in range(points)
    ]
    values = np.array([float(spec.function(x)) for x in grid])
    weights = np.array([float(spec.weight(x)) for x in grid])
    powers = np.array([[float(x**k) for k in range(len(best))] for x in grid])
    unit = np.spacing(np.abs(best).astype(np.float32)).astype(np.float64)
    singles = np.concatenate([np.eye(len(best)), -np.eye(len(best))])
    pairs = [a + c for a, c in itertools.combinations(singles, 2) if np.any(a + c)]
    steps = np.array([*singles, *pairs]) * unit
    # What a step changes does not depend on where it is taken.
    effects = weights * (steps @ powers.T)
    error = weights * (powers @ best - values)
    worst = np.abs(error).max()
    while True:
        candidates = np.abs(error + effects).max(axis=1)
        index = int(np.argmin(candidates))
        if candidates[index] >= worst * 0.9999:
            return [float(c) for c in best]
        best, error, worst = best + steps[index], error + effects[index], candidates[index]


def shift(in_t: list[mpf], centre: mpf, half: mpf) -> list[mpf]:
    """Powers of ``(x - centre) / half`` expanded to powers of ``x``."""
    result = [mpf(0)]
    for coefficient in reversed(in_t):
        longer = [mpf(0)] * (len(result) + 1)
        for i, value in enumerate(result):
            longer[i] -= value * centre / half
            longer[i + 1] += value / half
        longer[0] += coefficient
        result = longer
    return result[: len(in_t)]


def near_zero(exact: Callable[[mpf], mpf], limit: mpf) -> Callable[[mpf], mpf]:
    """``exact`` with its removable singularity at 0 filled in."""
    return lambda x: limit if abs(x) < mpf(10) ** -25 else exact(x)
