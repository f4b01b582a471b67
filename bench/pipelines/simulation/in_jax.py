"""The simulations in JAX."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from bench.algorithms.constants import SCALING_EPS, SCALING_RATE, SOFTENING, TIME_STEP
from bench.algorithms.in_jax import n_body
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


def wave(before: Array, now: Array) -> Array:
    """Steps of the wave equation in space, eighth order in it, at rest outside: D x H x W each."""
    reach = len(STAR) - 1

    def curvature(x: Array) -> Array:
        result = 3 * STAR[0] * x
        for axis, extent in enumerate(x.shape):
            wide = jnp.pad(x, [(reach, reach) if axis == other else (0, 0) for other in range(3)])
            for far in range(1, reach + 1):
                below = lax.slice_in_dim(wide, reach - far, reach - far + extent, axis=axis)
                above = lax.slice_in_dim(wide, reach + far, reach + far + extent, axis=axis)
                result = result + STAR[far] * (below + above)
        return result

    for _ in range(WAVE_STEPS):
        before, now = now, 2 * now - before + COURANT2 * curvature(now)
    return now


def heat(u: Array) -> Array:
    """Steps of the heat equation on a plate whose border keeps its temperature: H x W."""

    def step(_: int, u: Array) -> Array:
        inner = u[1:-1, 1:-1]
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        return u.at[1:-1, 1:-1].set(inner + DIFFUSION * (around - 4 * inner))

    return lax.fori_loop(0, HEAT_STEPS, step, u)


def n_body_planes(
    x: Array, y: Array, z: Array, vx: Array, vy: Array, vz: Array, mass: Array
) -> tuple[Array, ...]:
    """One leapfrog step as in :func:`n_body`, with an array of N for each coordinate."""
    dx, dy, dz = (p[None, :] - p[:, None] for p in (x, y, z))
    squared = dx * dx + dy * dy + dz * dz + SOFTENING
    pull = mass[None, :] / (squared * jnp.sqrt(squared))
    vx, vy, vz = (v + TIME_STEP * (pull * d).sum(1) for v, d in ((vx, dx), (vy, dy), (vz, dz)))
    return x + TIME_STEP * vx, y + TIME_STEP * vy, z + TIME_STEP * vz, vx, vy, vz


def scaling(position: Array, distances: Array) -> Array:
    """Gradient descent for multidimensional scaling: N x 2 points, N x N distances to reach."""

    def step(_: int, position: Array) -> Array:
        apart = position[:, None, :] - position[None, :, :]
        length = jnp.sqrt((apart * apart).sum(-1) + SCALING_EPS)
        pull = 1 - distances / length
        return position - SCALING_RATE * (pull[:, :, None] * apart).mean(1)

    return lax.fori_loop(0, SCALING_STEPS, step, position)


def scaling_by_rows(position: Array, distances: Array) -> Array:
    """The same, where a scan over the points moves one after the other from the old places."""

    def step(position: Array, _: None) -> tuple[Array, None]:
        def moved(carry: None, row: tuple[Array, Array]) -> tuple[None, Array]:
            point, wanted = row
            apart = point - position
            length = jnp.sqrt((apart * apart).sum(-1) + SCALING_EPS)
            pull = 1 - wanted / length
            return carry, point - SCALING_RATE * (pull[:, None] * apart).mean(0)

        return lax.scan(moved, None, (position, distances))[1], None

    return lax.scan(step, position, None, length=SCALING_STEPS)[0]


def product_3x3(a: Array, b: Array) -> Array:
    """Products of a pair of matrices at every pixel: H x W x 3 x 3 each."""
    return a @ b


def inverse_3x3(a: Array) -> Array:
    """Inverses, from cross products of the rows: H x W x 3 x 3."""
    first, second, third = a[..., 0, :], a[..., 1, :], a[..., 2, :]
    columns = (jnp.cross(second, third), jnp.cross(third, first), jnp.cross(first, second))
    determinant = (first * columns[0]).sum(-1)
    return jnp.stack(columns, axis=-1) / determinant[..., None, None]
