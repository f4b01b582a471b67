"""The Mandelbrot set in JAX, with a loop that ends when data says so, and smooth colours.

Complex arithmetic, a ``while_loop`` and the colours are one compiled program.
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


@polyblocks_jit_jax(
    compile_options={"target": "cpu", "strict_target": True, "static_argnums": (0, 1)}
)
def mandelbrot(height: int, width: int, centre: complex, extent: float, limit: int) -> jax.Array:
    """A picture (height, width, 3), float32 from 0 to 1, of a part of the plane this wide."""
    x = jnp.linspace(-0.5, 0.5, width) * extent
    y = jnp.linspace(0.5, -0.5, height) * extent * (height / width)
    c = centre + x[None] + 1j * y[:, None]

    def inside(state: tuple[jax.Array, ...]) -> jax.Array:
        step, z, _ = state
        return (step < limit) & jnp.any(z.real**2 + z.imag**2 < 64)

    def iterate(state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        step, z, count = state
        alive = z.real**2 + z.imag**2 < 64
        return step + 1, jnp.where(alive, z * z + c, z), count + alive

    _, z, count = jax.lax.while_loop(inside, iterate, (0, jnp.zeros_like(c), jnp.zeros(c.shape)))
    size = z.real**2 + z.imag**2
    smooth = count - jnp.log2(jnp.log2(jnp.maximum(size, 64)) / 6)
    phase = jnp.array([0.0, 0.6, 1.0]) + jnp.log(smooth + 1)[..., None] * 1.3
    return jnp.where((size < 64)[..., None], 0, 0.5 - 0.5 * jnp.cos(phase * 2.2))


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw; the exit status is 1 if the picture is not that of jax.jit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=480, help="width of the picture")
    parser.add_argument("--limit", type=int, default=600, help="iterations")
    parser.add_argument("--out", type=Path, default=Path("out/jax_mandelbrot.png"))
    args = parser.parse_args(arguments)

    view = (args.size * 5 // 8, args.size, -0.745 + 0.113j, 0.02, args.limit)
    picture = np.asarray(mandelbrot(*view))
    by_xla = jax.jit(mandelbrot.polyblocks_original, static_argnums=(0, 1))(*view)
    # An orbit at the border of the set depends on the last bit of its beginning.
    different = float(np.mean(np.abs(picture - by_xla).max(-1) > 0.02))
    print(f"{different:.2%} of the pixels differ from those of jax.jit")
    print(mandelbrot.polyblocks_report())

    args.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray((picture * 255).round().astype(np.uint8)).save(args.out)
    return 0 if different < 0.02 else 1


if __name__ == "__main__":
    sys.exit(main())
