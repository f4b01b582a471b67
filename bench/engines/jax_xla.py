"""JAX on XLA."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from bench.engines import Prepared, joined, written_in

OUTPUTS = {"jax": "allocated by XLA at each call"}
DISTRIBUTIONS = {"jax": ("jax", "jaxlib")}


def warm_up(name: str, threads: int) -> None:
    """Compile something small. XLA takes the threads of the processors that it may use."""
    jax.jit(lambda x: x + 1)(jax.numpy.ones(4)).block_until_ready()


def prepare(name: str, program: str, inputs: tuple[np.ndarray[Any, Any], ...]) -> Prepared:
    """The function under ``jax.jit``; row numbers are 32 bits wide, as JAX has them."""
    arguments = jax.block_until_ready([jax.numpy.asarray(x) for x in inputs])
    jax.clear_caches()
    compiled = jax.jit(written_in("in_jax", program))
    return Prepared(lambda: jax.block_until_ready(compiled(*arguments)), joined)
