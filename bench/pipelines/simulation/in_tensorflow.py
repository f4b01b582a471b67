"""The simulations in TensorFlow."""

from __future__ import annotations

import tensorflow as tf
from tensorflow import Tensor

from bench.algorithms.constants import SCALING_EPS, SCALING_RATE, SOFTENING, TIME_STEP
from bench.algorithms.in_tensorflow import n_body
from bench.constants import DIFFUSION
from bench.pipelines.constants import (
    COURANT2,
    HEAT_STEPS,
    SCALING_STEPS,
    STAR,
    WAVE_STEPS,
)

__all__ = [
    "heat",
    "inverse_3x3",
    "n_body",
    "n_body_planes",
    "product_3x3",
    "scaling",
    "scaling_by_rows",
    "wave",
]


def wave(before: Tensor, now: Tensor) -> Tensor:
    """Steps of the wave equation in space, eighth order in it, at rest outside: D x H x W each."""
    reach = len(STAR) - 1

    def curvature(x: Tensor) -> Tensor:
        result = 3 * STAR[0] * x
        for axis in range(3):
            wide = tf.pad(x, [(reach, reach) if axis == other else (0, 0) for other in range(3)])
            for far in range(1, reach + 1):
                begins = [[at if axis == other else 0 for other in range(3)]
                          for at in (reach - far, reach + far)]  # fmt: skip
                below, above = (tf.slice(wide, begin, x.shape) for begin in begins)
                result = result + STAR[far] * (below + above)
        return result

    for _ in range(WAVE_STEPS):
        before, now = now, 2 * now - before + COURANT2 * curvature(now)
    return now


def heat(u: Tensor) -> Tensor:
    """Steps of the heat equation on a plate whose border keeps its temperature: H x W."""
    for _ in tf.range(HEAT_STEPS):
        inner = u[1:-1, 1:-1]
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        inner = inner + DIFFUSION * (around - 4 * inner)
        middle = tf.concat([u[1:-1, :1], inner, u[1:-1, -1:]], axis=1)
        u = tf.concat([u[:1], middle, u[-1:]], axis=0)
    return u


def n_body_planes(
    x: Tensor, y: Tensor, z: Tensor, vx: Tensor, vy: Tensor, vz: Tensor, mass: Tensor
) -> tuple[Tensor, ...]:
    """One leapfrog step as in :func:`n_body`, with an array of N for each coordinate."""
    dx, dy, dz = (p[None, :] - p[:, None] for p in (x, y, z))
    squared = dx * dx + dy * dy + dz * dz + SOFTENING
    pull = mass[None, :] / (squared * tf.sqrt(squared))
    vx, vy, vz = (
        v + TIME_STEP * tf.reduce_sum(pull * d, axis=1) for v, d in ((vx, dx), (vy, dy), (vz, dz))
    )
    return x + TIME_STEP * vx, y + TIME_STEP * vy, z + TIME_STEP * vz, vx, vy, vz


def scaling(position: Tensor, distances: Tensor) -> Tensor:
    """Gradient descent for multidimensional scaling: N x 2 points, N x N distances to reach."""
    for _ in tf.range(SCALING_STEPS):
        apart = position[:, None, :] - position[None, :, :]
        length = tf.sqrt(tf.reduce_sum(apart * apart, axis=-1) + SCALING_EPS)
        pull = 1 - distances / length
        position = position - SCALING_RATE * tf.reduce_mean(pull[:, :, None] * apart, axis=1)
    return position


def scaling_by_rows(position: Tensor, distances: Tensor) -> Tensor:
    """The same, where the points move one after the other from the old places."""

    def moved(row: tuple[Tensor, Tensor]) -> Tensor:
        point, wanted = row
        apart = point - position
        length = tf.sqrt(tf.reduce_sum(apart * apart, axis=-1) + SCALING_EPS)
        pull = 1 - wanted / length
        return point - SCALING_RATE * tf.reduce_mean(pull[:, None] * apart, axis=0)

    for _ in tf.range(SCALING_STEPS):
        position = tf.map_fn(moved, (position, distances), fn_output_signature=tf.float32)
    return position


def product_3x3(a: Tensor, b: Tensor) -> Tensor:
    """Products of a pair of matrices at every pixel: H x W x 3 x 3 each."""
    return a @ b


def inverse_3x3(a: Tensor) -> Tensor:
    """Inverses, from cross products of the rows: H x W x 3 x 3."""
    first, second, third = tf.unstack(a, axis=-2)
    columns = (
        tf.linalg.cross(second, third),
        tf.linalg.cross(third, first),
        tf.linalg.cross(first, second),
    )
    determinant = tf.reduce_sum(first * columns[0], axis=-1)
    return tf.stack(columns, axis=-1) / determinant[..., None, None]
