"""Multidimensional scaling in JAX: shaken points find back from the distances they had.

A step is written in two ways, for all pairs at once and as a loop over the points; all steps are
one compiled program. Writes the points before and after.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image
from skimage import data

from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax


@polyblocks_jit_jax(
    compile_options={"target": "cpu", "strict_target": True, "static_argnames": ("by_points",)}
)
def place(points: jax.Array, wanted: jax.Array, steps: jax.Array, by_points: bool) -> jax.Array:
    """Move points (n, 2) until their distances are those that are wanted (n, n)."""

    def step(_: jax.Array, points: jax.Array) -> jax.Array:
        def moved(row: tuple[jax.Array, jax.Array]) -> jax.Array:
            point, wanted = row
            apart = point - points
            length = jnp.sqrt(jnp.sum(apart**2, axis=-1) + 1e-9)
            return point - jnp.mean((1 - wanted / length)[:, None] * apart, axis=0)

        rows = (points, wanted)
        return jax.lax.map(moved, rows) if by_points else jax.vmap(moved)(rows)

    return jax.lax.fori_loop(0, steps, step, points)


def picture(points: np.ndarray, colours: np.ndarray) -> np.ndarray:
    """Points of which most are between -1 and 1."""
    dark = np.full((96, 96, 3), 20, np.uint8)
    y, x = (points * 40 + 48).astype(int).clip(0, 95).T
    dark[y, x] = colours
    return dark.repeat(3, 0).repeat(3, 1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Place points; the exit status is 1 if they do not find their places."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=600)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path("out/jax_points.png"))
    args = parser.parse_args(arguments)

    random = np.random.default_rng(0)
    drawn = random.permutation(np.argwhere(~data.horse()))[: args.points]
    hidden = (drawn / 200 - [0.82, 1]).astype(np.float32)
    wanted = np.sqrt(np.square(hidden[:, None] - hidden).sum(-1))
    start = (hidden + random.normal(0, 0.35, hidden.shape)).astype(np.float32)
    placed, others = (place(start, wanted, args.steps, by_points=b) for b in (False, True))
    by_xla = jax.jit(place.polyblocks_original, static_argnums=3)(start, wanted, args.steps, False)
    difference = max(float(jnp.abs(placed - x).max()) for x in (others, by_xla))
    centred = np.asarray(placed - placed.mean(0))  # distances say nothing of turns
    left, _, right = np.linalg.svd(centred.T @ (hidden - hidden.mean(0)))
    found = centred @ (left @ right) + hidden.mean(0)
    error = float(np.abs(found - hidden).max())
    print(f"largest difference: {difference:.1e}, error of a place: {error:.1e}")
    print(place.polyblocks_report())
    colours = np.c_[hidden * 100 + 140, 140 - hidden[:, 0] * 100].clip(0, 255)
    both = [picture(points, colours) for points in (start, found)]
    args.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.concatenate(both, axis=1)).save(args.out)
    return 0 if difference < 1e-3 and error < 0.01 else 1


if __name__ == "__main__":
    sys.exit(main())
