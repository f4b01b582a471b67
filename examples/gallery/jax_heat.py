"""Heat in a plate, in JAX: what was a hot horse flows apart; the border of the plate stays cold.

All steps are one ``fori_loop``. Writes the temperatures before and after.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import jax
import numpy as np
from PIL import Image
from skimage import data

from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax


@polyblocks_jit_jax(compile_options={"target": "cpu", "strict_target": True})
def spread(plate: jax.Array, steps: jax.Array, diffusion: float = 0.2) -> jax.Array:
    """Temperatures (height, width) after some steps; those at the border are kept."""

    def step(_: jax.Array, u: jax.Array) -> jax.Array:
        inner = u[1:-1, 1:-1]
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        return u.at[1:-1, 1:-1].set(inner + diffusion * (around - 4 * inner))

    return jax.lax.fori_loop(0, steps, step, plate)


def in_float64(plate: np.ndarray, steps: int) -> np.ndarray:
    """The same with NumPy."""
    u = plate.astype(np.float64)
    for _ in range(steps):
        inner = u[1:-1, 1:-1]
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        u[1:-1, 1:-1] = inner + 0.2 * (around - 4 * inner)
    return u


def main(arguments: Sequence[str] | None = None) -> int:
    """Let heat flow; the exit status is 1 if the result is not NumPy's in float64."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=280)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path("out/jax_heat.png"))
    args = parser.parse_args(arguments)

    horse = data.horse()
    rows, columns = (np.linspace(0, extent - 1, args.size).astype(int) for extent in horse.shape)
    plate = (~horse[rows][:, columns]).astype(np.float32)
    result = np.asarray(spread(plate, args.steps))
    difference = float(np.abs(result - in_float64(plate, args.steps)).max())
    print(f"largest difference: {difference:.1e}")
    print(spread.polyblocks_report())

    both = np.concatenate([plate, result], axis=1)[..., None]
    glow = np.clip(both * [2.2, 1.6, 1.2] - [0, 0.5, 0.7], 0, 1)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray((glow * 255).round().astype(np.uint8)).save(args.out)
    return 0 if difference < 1e-4 else 1


if __name__ == "__main__":
    sys.exit(main())
