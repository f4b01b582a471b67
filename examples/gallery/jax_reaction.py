"""Two reacting chemicals in JAX (Gray-Scott): spots that grow and divide, as on a skin.

All steps are one ``fori_loop``, and one compiled program. Writes the second chemical at the end.
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


def laplacian(x: jax.Array) -> jax.Array:
    """The sum of the differences to the four neighbours; the grid is a torus."""
    return sum(jnp.roll(x, shift, axis) for shift in (-1, 1) for axis in (0, 1)) - 4 * x


@polyblocks_jit_jax(compile_options={"target": "cpu", "strict_target": True})
def react(
    u: jax.Array, v: jax.Array, steps: jax.Array, feed: float = 0.037, kill: float = 0.06
) -> tuple[jax.Array, jax.Array]:
    """Some steps of the reaction u + 2v -> 3v, with diffusion; u is fed, v removed."""

    def step(_: jax.Array, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        u, v = state
        reaction = u * v * v
        return (
            u + 0.16 * laplacian(u) - reaction + feed * (1 - u),
            v + 0.08 * laplacian(v) + reaction - (feed + kill) * v,
        )

    return jax.lax.fori_loop(0, steps, step, (u, v))


def main(arguments: Sequence[str] | None = None) -> int:
    """Let react; the exit status is 1 if the result of a few steps is not that of jax.jit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--steps", type=int, default=8000)
    parser.add_argument("--out", type=Path, default=Path("out/jax_reaction.png"))
    args = parser.parse_args(arguments)

    random = np.random.default_rng(0)
    u, v = np.ones((args.size, args.size), np.float32), np.zeros((args.size, args.size), np.float32)
    for row, column in random.integers(0, args.size - 6, (12, 2)):
        u[row : row + 6, column : column + 6], v[row : row + 6, column : column + 6] = 0.5, 0.25

    ours, theirs = (f(u, v, 20)[1] for f in (react, jax.jit(react.polyblocks_original)))
    difference = float(jnp.abs(ours - theirs).max())
    print(f"largest difference: {difference:.1e}")
    _, result = react(u, v, args.steps)
    print(react.polyblocks_report())

    level = np.clip(np.asarray(result)[..., None] * 2.8, 0, 1)
    dark, middle, light = (np.array(c) for c in ((12, 18, 48), (38, 132, 150), (250, 236, 190)))
    colours = np.where(
        level < 0.5, dark + (middle - dark) * 2 * level, middle + (light - middle) * (2 * level - 1)
    )
    args.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(colours.astype(np.uint8)).save(args.out)
    return 0 if difference < 1e-5 else 1


if __name__ == "__main__":
    sys.exit(main())
