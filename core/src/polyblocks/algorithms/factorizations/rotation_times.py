"""Predicted times of eigenvectors and singular vectors: by rotations, and by LAPACK.

Rates are measured on one core of a Zen 4, in float32: of eigenvectors for 8 to 512 rows, of
singular vectors for 4 to 64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from polyblocks.algorithms.guard import Prediction

#: Seconds that a call of each takes at least.
CALL_S = 10e-6
LIBRARY_CALL_S = 15e-6


#: Of eigenvectors: seconds for the angle of a rotation, and operations in a second.
_ANGLE_S, _EIGEN_RATE = 25e-9, 37e9
#: Matrices that are turned at once where they are lanes.
_LANES = 16


@dataclass(frozen=True)
class _Rates:
    """Of singular vectors.

    Attributes:
        one: operations in a second, of rotations of one matrix after the other.
        lanes: the same of matrices that are lanes of vectors.
        most_in_lanes: rows of the largest matrices whose arrays fit there.
        library: operations in a second, of LAPACK.
        cubes: operations of LAPACK, in cubes of the rows.
        library_each: seconds that each matrix takes besides.
    """

    one: float
    lanes: float
    most_in_lanes: int
    library: float
    cubes: float
    library_each: float


# Golub and Van Loan, Matrix Computations, 4th edition, 8.6, count the operations of LAPACK.
_SINGULAR = _Rates(1.4e9, 8e9, 16, 2.7e9, 22, 20e-6)


def sweeps(n: int, bits: int) -> int:
    """Sweeps after which nothing changes but by rounding.

    Measured on matrices of random elements and of clustered eigenvalues.

    Args:
        n: rows that are rotated.
        bits: of an element.
    """
    if n <= 2:
        return 1 if n < 2 else 2
    more = 3 if bits == 64 else 0
    return 4 + more + math.ceil(math.log2(n) * 0.75)


def prediction(shape: Sequence[int], *, singular: bool, many: bool) -> Prediction:
    """The times of all matrices of an array.

    Args:
        shape: of the array, [..., m, n].
        singular: whether singular vectors are computed, not eigenvectors.
        many: whether there are matrices for all lanes of a vector.
    """
    if not singular:
        return _eigenvectors(prod(shape[:-2]), shape[-1], many)
    rates = _SINGULAR
    count, (least, longest) = prod(shape[:-2]), sorted(shape[-2:])
    # Two rows and two columns of the matrix, or three products of two rows and these themselves,
    # and two rows of the vectors: six operations for two elements.
    rotation = 12 * longest + 6 * least
    operations = sweeps(least, 32) * least * (least - 1) / 2 * rotation
    rate = rates.lanes if many and longest <= rates.most_in_lanes else rates.one
    library = rates.library_each + rates.cubes * least * least * longest / rates.library
    return Prediction(
        "rotations", CALL_S + count * operations / rate, LIBRARY_CALL_S + count * library
    )


def _eigenvectors(count: int, n: int, many: bool) -> Prediction:
    """By the implicit QR algorithm: three sweeps for each eigenvalue, over fewer and fewer rows.

    A rotation combines two rows of vectors. LAPACK's time is fitted by a square and a cube.
    """
    rotations = 3 * (n * (n - 1) / 2 + 2 * n)
    each = _ANGLE_S / (_LANES if many else 1) + 6 * n / _EIGEN_RATE
    library = 5e-6 + 30e-9 * n**2 + 0.1e-9 * n**3
    return Prediction(
        "rotations", CALL_S + count * rotations * each, LIBRARY_CALL_S + count * library
    )
