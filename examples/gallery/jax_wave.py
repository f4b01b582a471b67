"""A wave in a cube of two materials, in JAX: it is slower in one, thrown back and bent at it.

The curvature is of eighth order along each axis: every point depends on 25. The steps are one
``fori_loop``. Writes a slice through the cube, at the beginning and at the end.
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

from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax

#: Coefficients of the second derivative at distances 0 to 4 (Fornberg 1988).
STAR = (-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560)


def curvature(x: jax.Array) -> jax.Array:
    """The sum of the second derivatives in a cube, with zeros around it."""
    result = 3 * STAR[0] * x
    for axis, extent in enumerate(x.shape):
        wide = jnp.pad(x, [(4, 4) if axis == other else (0, 0) for other in range(3)])
        for far in range(1, 5):
            ends = (
                jax.lax.slice_in_dim(wide, at, at + extent, axis=axis) for at in (4 - far, 4 + far)
            )
            result = result + STAR[far] * sum(ends)
    return result


@polyblocks_jit_jax(compile_options={"target": "cpu", "strict_target": True})
def travel(start: jax.Array, squared_speed: jax.Array, steps: jax.Array) -> jax.Array:
    """What becomes of a wave that begins at rest; speeds are in cells for each step."""

    def step(_: jax.Array, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        before, now = state
        return now, 2 * now - before + squared_speed * curvature(now)

    return jax.lax.fori_loop(0, steps, step, (start, start))[1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Let it travel; the exit status is 1 if a few steps are not those of jax.jit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=96, help="cells along a side of the cube")
    parser.add_argument("--steps", type=int, default=90)
    parser.add_argument("--out", type=Path, default=Path("out/jax_wave.png"))
    args = parser.parse_args(arguments)

    z, y, x = np.mgrid[: args.size, : args.size, : args.size] / args.size
    squares = ((z - 0.5) ** 2 + (y - 0.4) ** 2 + (x - 0.35) ** 2) * args.size**2
    start = np.exp(-squares / 8).astype(np.float32)
    squared_speed = np.where(x + y / 4 < 0.7, 0.18, 0.05).astype(np.float32)
    ours, theirs = (
        f(start, squared_speed, 20) for f in (travel, jax.jit(travel.polyblocks_original))
    )
    difference = float(jnp.abs(ours - theirs).max())
    print(f"largest difference: {difference:.1e}")
    end = np.asarray(travel(start, squared_speed, args.steps))
    print(travel.polyblocks_report())

    slices = [wave[args.size // 2] / np.abs(wave[args.size // 2]).max() for wave in (start, end)]
    level = np.kron(np.concatenate(slices, axis=1), np.ones((3, 3)))[..., None]
    up, down = (np.clip(sign * level, 0, 1) ** 0.7 for sign in (1, -1))
    shaded = np.tile(squared_speed[args.size // 2] < 0.1, (1, 2)).repeat(3, 0).repeat(3, 1)
    picture = (255 - 25 * shaded[..., None]) - up * [30, 180, 230] - down * [220, 150, 20]
    args.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture.clip(0, 255).astype(np.uint8)).save(args.out)
    return 0 if difference < 1e-5 else 1


if __name__ == "__main__":
    sys.exit(main())
