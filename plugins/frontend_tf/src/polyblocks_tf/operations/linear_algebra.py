"""Linear algebra on matrices that are small enough for closed formulas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

#: Above this size the formula of the adjugate costs accuracy and operations.
LARGEST = 3


def small_inverse(op: Any, inputs: list[tf.Tensor]) -> Sequence[tf.Tensor] | None:
    """``MatrixInverse`` of at most 3x3 matrices: the adjugate over the determinant."""
    (matrix,) = inputs
    size = matrix.shape[-1]
    if size is None or not 0 < size <= LARGEST:
        return None
    if op.get_attr("adjoint"):
        matrix = tf.linalg.adjoint(matrix)
    rows = [[matrix[..., i, j] for j in range(size)] for i in range(size)]
    if size == 1:
        return [1 / matrix]
    if size == 2:
        (a, b), (c, d) = rows
        adjugate = [[d, -b], [-c, a]]
        determinant = a * d - b * c
    else:
        adjugate = [[_cofactor(rows, column, row) for column in range(size)] for row in range(size)]
        determinant = sum(rows[0][j] * adjugate[j][0] for j in range(size))
    stacked = tf.stack([tf.stack(row, axis=-1) for row in adjugate], axis=-2)
    return [stacked / determinant[..., None, None]]


def _cofactor(rows: list[list[tf.Tensor]], row: int, column: int) -> tf.Tensor:
    """Of a 3x3 matrix; cyclic indices give the sign."""
    i, k = (row + 1) % 3, (row + 2) % 3
    j, m = (column + 1) % 3, (column + 2) % 3
    return rows[i][j] * rows[k][m] - rows[i][m] * rows[k][j]
