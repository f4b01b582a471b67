"""This compiler behind JAX."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from bench.engines import Prepared, joined, written_in
from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax

OUTPUTS = {"polyblocks-jax": "allocated by XLA at each call"}
DISTRIBUTIONS = {
    "polyblocks-jax": ("polyblocks-compiler", "polyblocks-jax", "polyblocks-cpu", "jax")
}


def warm_up(name: str, threads: int) -> None:
    """Compile something small."""
    jax.block_until_ready(polyblocks_jit_jax(lambda x: x + 1)(jax.numpy.ones(4)))


def prepare(name: str, program: str, inputs: tuple[np.ndarray[Any, Any], ...]) -> Prepared:
    """The decorated function."""
    arguments = jax.block_until_ready([jax.numpy.asarray(x) for x in inputs])
    jax.clear_caches()
    compiled = polyblocks_jit_jax(
        written_in("in_jax", program), compile_options={"target": "cpu", "strict_target": True}
    )
    return Prepared(lambda: jax.block_until_ready(compiled(*arguments)), joined)
