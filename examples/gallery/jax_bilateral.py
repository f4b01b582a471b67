"""A bilateral filter in JAX: noise goes, edges stay.

Each pixel becomes a mean of the 9 x 9 around it, in which pixels weigh more the nearer and the more
alike in colour they are. Writes before and after.
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

#: Pixels from the middle of a window to its border.
REACH = 4


@polyblocks_jit_jax(compile_options={"target": "cpu", "strict_target": True})
def bilateral(image: jax.Array, space: float = 2.5, alike: float = 0.25) -> jax.Array:
    """Smooth an image (3, height, width); deviations are in pixels and in colour."""
    _, height, width = image.shape
    padded = jnp.pad(image, ((0, 0), (REACH, REACH), (REACH, REACH)), mode="edge")
    total, weights = jnp.zeros_like(image), jnp.zeros((height, width), image.dtype)
    for y in range(2 * REACH + 1):
        for x in range(2 * REACH + 1):
            there = padded[:, y : y + height, x : x + width]
            apart = jnp.sum((there - image) ** 2, axis=0) / (2 * alike**2)
            away = ((y - REACH) ** 2 + (x - REACH) ** 2) / (2 * space**2)
            weight = jnp.exp(-apart - away)
            total, weights = total + weight * there, weights + weight
    return total / weights


def main(arguments: Sequence[str] | None = None) -> int:
    """Smooth a portrait; the exit status is 1 if the result is not that of jax.jit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=240)
    parser.add_argument("--out", type=Path, default=Path("out/jax_bilateral.png"))
    args = parser.parse_args(arguments)

    pixels = data.astronaut()[: args.size, 110 : 110 + args.size].transpose(2, 0, 1) / 255
    noise = np.random.default_rng(0).normal(0, 0.06, pixels.shape)
    noisy = (pixels + noise).astype(np.float32)
    result = np.asarray(bilateral(noisy))
    difference = float(np.abs(result - jax.jit(bilateral.polyblocks_original)(noisy)).max())
    before, after = (float(np.square(x - pixels).mean()) for x in (noisy, result))
    print(f"mean square error {before:.4f} -> {after:.4f}")
    print(f"largest difference: {difference:.1e}")
    print(bilateral.polyblocks_report())

    both = np.concatenate([noisy, result], axis=2).transpose(1, 2, 0).clip(0, 1) * 255
    args.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(both.round().astype(np.uint8)).save(args.out)
    return 0 if difference < 1e-5 and after < before / 2 else 1


if __name__ == "__main__":
    sys.exit(main())
