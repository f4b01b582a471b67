"""A bilateral grid in JAX: a photograph becomes flat areas with sharp edges, as if painted.

Pixels are summed in coarse cells of place and brightness, the cells are blurred, and every pixel
reads the grid at its own place, between the cells. Writes before and after.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.ndimage import map_coordinates
from PIL import Image
from skimage import data

from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax


def blur(grid: jax.Array) -> jax.Array:
    """Five binomial taps along every axis of (channels, shades, rows, columns) but the first."""
    for axis in (1, 2, 3):
        shifts = zip((1 / 16, 4 / 16, 6 / 16, 4 / 16, 1 / 16), range(5), strict=True)
        wide = jnp.pad(grid, [(2, 2) if axis == other else (0, 0) for other in range(4)])
        extent = grid.shape[axis]
        grid = sum(w * jax.lax.slice_in_dim(wide, s, s + extent, axis=axis) for w, s in shifts)
    return grid


@polyblocks_jit_jax(
    compile_options={"target": "cpu", "strict_target": True, "static_argnums": (1, 2)}
)
def paint(image: jax.Array, cell: int = 10, shades: int = 8) -> jax.Array:
    """Smooth an image (3, height, width) from 0 to 1 in cells of so many pixels and shades."""
    _, height, width = image.shape
    bright = jnp.tensordot(jnp.array([0.299, 0.587, 0.114], image.dtype), image, 1) * shades
    y, x = jnp.arange(height)[:, None], jnp.arange(width)
    values = jnp.concatenate([image, jnp.ones((1, height, width), image.dtype)])
    grid = jnp.zeros((4, shades + 1, -(-height // cell), -(-width // cell)), image.dtype)
    shade = (bright + 0.5).astype(jnp.int32)
    grid = blur(grid.at[:, shade, y // cell, x // cell].add(values))
    middles = [((p + 0.5) / cell - 0.5).astype(image.dtype) for p in (y, x)]
    places = jnp.broadcast_arrays(bright, *middles)
    *colours, count = (map_coordinates(part, places, order=1, mode="nearest") for part in grid)
    return jnp.stack(colours) / count


def main(arguments: Sequence[str] | None = None) -> int:
    """Paint a cup of coffee; the exit status is 1 if the result is not that of jax.jit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=300)
    parser.add_argument("--out", type=Path, default=Path("out/jax_grid.png"))
    args = parser.parse_args(arguments)

    pixels = data.coffee()[20 : 20 + args.size, 60 : 60 + args.size].transpose(2, 0, 1)
    image = (pixels / 255).astype(np.float32)
    result = np.asarray(paint(image))
    by_xla = jax.jit(paint.polyblocks_original, static_argnums=(1, 2))(image)
    difference = float(np.abs(result - by_xla).max())
    print(f"largest difference: {difference:.1e}")
    print(paint.polyblocks_report())

    both = np.concatenate([image, result], axis=2).transpose(1, 2, 0).clip(0, 1) * 255
    args.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(both.round().astype(np.uint8)).save(args.out)
    return 0 if difference < 1e-5 else 1


if __name__ == "__main__":
    sys.exit(main())
