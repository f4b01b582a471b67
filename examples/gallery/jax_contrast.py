"""Local contrast in JAX by a local Laplacian filter: the moon's faint hills come out.

For each of a few shades the image is bent around that shade, and made a pyramid; every detail of
the result is read from the pyramids of the two shades nearest to it (Paris, Hasinoff and Kautz
2011; Aubry and others 2014). Writes before and after.
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

LEVELS, SHADES = 5, 8


def halved(x: jax.Array) -> jax.Array:
    """(images, height, width) at half the resolution, with taps of 1, 3, 3 and 1 along sides."""
    for axis in (1, 2):
        wide = jnp.pad(x, [(1, 1) if axis == other else (0, 0) for other in range(3)], mode="edge")
        taps = zip((1 / 8, 3 / 8, 3 / 8, 1 / 8), range(4), strict=True)
        end = x.shape[axis] - 1
        x = sum(w * jax.lax.slice_in_dim(wide, at, at + end, 2, axis) for w, at in taps)
    return x


def doubled(x: jax.Array) -> jax.Array:
    """(images, height, width) at twice the resolution, linear between pixels."""
    return jax.image.resize(x, (x.shape[0], 2 * x.shape[1], 2 * x.shape[2]), "linear")


@polyblocks_jit_jax(compile_options={"target": "cpu", "strict_target": True})
def contrast(image: jax.Array, detail: float = 3.0, softness: float = 0.1) -> jax.Array:
    """More detail in an image (height, width) from 0 to 1, whose sides are multiples of 16."""
    shades = jnp.linspace(0, 1, SHADES)[:, None, None]
    apart = image - shades
    bent = image + detail * apart * jnp.exp(-(apart**2) / (2 * softness**2))
    bents, images = [bent], [image[None]]
    for _ in range(LEVELS - 1):
        bents.append(halved(bents[-1]))
        images.append(halved(images[-1]))
    result = images[-1]
    for level in reversed(range(LEVELS - 1)):
        details = bents[level] - doubled(bents[level + 1])
        place = images[level] * (SHADES - 1)
        below = jnp.clip(place.astype(jnp.int32), 0, SHADES - 2)
        low, high = (jnp.take_along_axis(details, below + n, axis=0) for n in (0, 1))
        result = doubled(result) + low + (place - below) * (high - low)
    return result[0]


def main(arguments: Sequence[str] | None = None) -> int:
    """Add contrast to the moon; the exit status is 1 if the result is not that of jax.jit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=288, help="a multiple of 16")
    parser.add_argument("--out", type=Path, default=Path("out/jax_contrast.png"))
    args = parser.parse_args(arguments)
    image = data.moon()[-args.size :, -args.size - 100 : -100].astype(np.float32) / 255
    result = np.asarray(contrast(image))
    difference = float(np.abs(result - jax.jit(contrast.polyblocks_original)(image)).max())
    print(f"largest difference: {difference:.1e}")
    print(contrast.polyblocks_report())
    both = np.concatenate([image, result], axis=1).clip(0, 1) * 255
    args.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(both.round().astype(np.uint8)).convert("RGB").save(args.out)
    return 0 if difference < 1e-5 else 1


if __name__ == "__main__":
    sys.exit(main())
