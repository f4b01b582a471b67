"""A disc of stars in JAX that a passing mass pulls apart: gravity of all on all.

Every step computes the forces between all pairs. The steps are one ``scan`` in one compiled
program. Writes the paths.
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


def accelerations(place: jax.Array, mass: jax.Array) -> jax.Array:
    """What pulls at bodies at (n, 2) with masses (n,), softened when they are near."""
    apart = place[None] - place[:, None]
    squares = jnp.sum(apart**2, axis=-1) + 0.01
    return jnp.sum(apart * (mass * squares**-1.5)[..., None], axis=1)


@polyblocks_jit_jax(
    compile_options={"target": "cpu", "strict_target": True, "static_argnames": ("steps",)}
)
def move(place: jax.Array, speed: jax.Array, mass: jax.Array, steps: int) -> jax.Array:
    """Places after each step of the leapfrog method: (steps, n, 2)."""

    def step(state: tuple[jax.Array, ...], _: None) -> tuple[tuple[jax.Array, ...], jax.Array]:
        place, speed = state
        speed = speed + 0.005 * accelerations(place, mass)
        place = place + 0.01 * speed
        speed = speed + 0.005 * accelerations(place, mass)
        return (place, speed), place

    return jax.lax.scan(step, (place, speed), length=steps)[1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Move the stars; the exit status is 1 if their first steps are not those of jax.jit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=400, help="number of stars")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--out", type=Path, default=Path("out/jax_bodies.png"))
    args = parser.parse_args(arguments)

    random = np.random.default_rng(1)
    radius, angle = np.sqrt(random.uniform(0.1, 1, args.size)), random.uniform(0, 7, args.size)
    around = np.stack([np.cos(angle), np.sin(angle)], 1)
    place = np.concatenate([[[0, 0], [2.4, -1.6]], around * radius[:, None]]).astype(np.float32)
    turning = around[:, ::-1] * [-1, 1] / np.sqrt(radius)[:, None]
    speed = np.concatenate([[[0, 0], [-0.9, 0.75]], turning]).astype(np.float32)
    mass = np.concatenate([[1, 0.6], np.full(args.size, 1e-5)]).astype(np.float32)

    paths = np.asarray(move(place, speed, mass, steps=args.steps))
    by_xla = jax.jit(move.polyblocks_original, static_argnames="steps")(place, speed, mass, steps=9)
    difference = float(np.abs(paths[:9] - by_xla).max())
    print(f"largest difference: {difference:.1e}")
    print(move.polyblocks_report())

    light = np.zeros((2, 400, 320, 3))
    for panel, seen in zip(light, (paths[:160], paths[-160:]), strict=True):
        tails = ((seen - seen[:, :1]) * 90 + [160, 200]).astype(int)  # from the disc's middle
        for tail, strength in zip(tails, np.linspace(0, 0.5, len(tails)) ** 3, strict=True):
            x, y = tail[((tail >= 0) & (tail < [320, 400])).all(1)].T
            np.add.at(panel, (y, x), strength * np.array([5, 7, 10]))
    light = np.concatenate(list(light), axis=1)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray((255 * (1 - np.exp(-light))).astype(np.uint8)).save(args.out)
    return 0 if difference < 1e-4 else 1


if __name__ == "__main__":
    sys.exit(main())
