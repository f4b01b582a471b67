"""A blur of an image in JAX: two convolutions become one loop nest. Compared with ``jax.jit``."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax


def blur_x_blur_y(image: jax.Array) -> jax.Array:
    """Blur along the rows, then along the columns; (3, height, width) -> 4 less of each."""
    kernel = jnp.array([0.0625, 0.25, 0.375, 0.25, 0.0625], jnp.float32)
    channels, height, width = image.shape
    x = image.reshape(channels, 1, height, width)
    x = jax.lax.conv_general_dilated(x, kernel.reshape(1, 1, 1, 5), (1, 1), "VALID")
    x = jax.lax.conv_general_dilated(x, kernel.reshape(1, 1, 5, 1), (1, 1), "VALID")
    return x.reshape(channels, height - 4, width - 4)


def best_of(function: Callable[..., jax.Array], argument: jax.Array, calls: int) -> float:
    """Seconds of the fastest of some calls, after one that compiles."""
    function(argument).block_until_ready()
    samples = []
    for _ in range(calls):
        begin = time.perf_counter()
        function(argument).block_until_ready()
        samples.append(time.perf_counter() - begin)
    return min(samples)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compile, compare, time; the exit status is 1 if the results differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--height", type=int, default=1080)
    parser.add_argument("--width", type=int, default=1920)
    parser.add_argument("--calls", type=int, default=5)
    args = parser.parse_args(arguments)

    image = jax.random.uniform(jax.random.key(0), (3, args.height, args.width))
    compiled = polyblocks_jit_jax(blur_x_blur_y, compile_options={"target": "cpu"})
    by_xla = jax.jit(blur_x_blur_y)
    difference = float(np.abs(compiled(image) - by_xla(image)).max())
    print(f"largest difference: {difference:.1e}")
    for name, function in (("polyblocks", compiled), ("jax.jit", by_xla)):
        print(f"{name}: {best_of(function, image, args.calls) * 1e3:.3f} ms")
    print(compiled.polyblocks_report())
    return 0 if difference < 1e-5 else 1


if __name__ == "__main__":
    sys.exit(main())
