"""Multidimensional scaling by gradient descent: points in the plane from distances alone.

The whole descent is one ``lax.scan``, and one compiled program: gradient, update and loop.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

import jax
import jax.numpy as jnp

from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax


def distances(points: jax.Array) -> jax.Array:
    """All distances between points (n, dimensions) -> (n, n); a little above zero to itself."""
    difference = points[:, None] - points[None]
    return jnp.sqrt(jnp.sum(difference**2, axis=-1) + 1e-9)


def stress(points: jax.Array, wanted: jax.Array) -> jax.Array:
    """By how much the distances miss those that are wanted: mean square."""
    return jnp.mean((distances(points) - wanted) ** 2)


@polyblocks_jit_jax(compile_options={"target": "cpu", "static_argnums": (2,)})
def descend(points: jax.Array, wanted: jax.Array, steps: int) -> tuple[jax.Array, jax.Array]:
    """Gradient descent from some points; returns the last ones and the stress before each step."""

    def step(points: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
        value, gradient = jax.value_and_grad(stress)(points, wanted)
        return points - 0.2 * points.shape[0] * gradient, value

    return jax.lax.scan(step, points, length=steps)


def main(arguments: Sequence[str] | None = None) -> int:
    """Place points; the exit status is 1 if the stress did not go down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=64)
    parser.add_argument("--steps", type=int, default=1000)
    args = parser.parse_args(arguments)

    hidden, start = (
        jax.random.normal(key, (args.points, 2)) for key in jax.random.split(jax.random.key(0))
    )
    wanted = distances(hidden)
    by_xla = jax.jit(descend.polyblocks_original, static_argnums=2)
    for name, function in (("polyblocks", descend), ("jax.jit", by_xla)):
        jax.block_until_ready(function(start, wanted, args.steps))  # compiles
        begin = time.perf_counter()
        _, history = jax.block_until_ready(function(start, wanted, args.steps))
        print(f"{name}: {(time.perf_counter() - begin) * 1e3:.2f} ms")
        print(f"  stress {history[0]:.4f} -> {history[-1]:.6f}")
    print(descend.polyblocks_report())
    return 0 if history[-1] < history[0] / 10 else 1


if __name__ == "__main__":
    sys.exit(main())
