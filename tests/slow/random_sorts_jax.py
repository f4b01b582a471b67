"""Random sorts of JAX by several keys, with any comparator, and selections, against XLA.

``python tests/slow/random_sorts_jax.py --count 60``. With ``--arch sm_90a`` or ``--arch gfx1100``
they run on a simulated GPU, with rows of up to 300 elements.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests" / "support")]

from sort_sweep import Outcome, sweep  # noqa: E402

from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax  # noqa: E402

DTYPES = ("float32", "bfloat16", "float16", "int32", "int16", "int8", "uint32", "uint8", "bool")


def draw(number: int, longest: int) -> tuple[str, Callable[..., Any], list[Any]]:
    """What a sample is, its program and its arguments."""
    numbers = random.Random(number)
    values = np.random.default_rng(number)
    extent = int(longest ** numbers.uniform(0.1, 1)) + 1
    shape = [*(numbers.randint(1, 6) for _ in range(numbers.randint(0, 2))), extent]
    numbers.shuffle(shape)
    dim = shape.index(extent)
    operands = []
    for _ in range(numbers.randint(1, 3)):
        dtype = numbers.choice(DTYPES)
        x = np.round(values.normal(size=shape) * numbers.choice((1, 2, 100)))
        if "float" in dtype:
            for special in (np.nan, np.inf, -np.inf, -0.0, 0.5):
                x[values.random(shape) < 0.05] = special
        x = x if "float" in dtype else x % 2 if dtype == "bool" else np.clip(np.abs(x), 0, 127)
        operands.append(jnp.asarray(x.astype("float32")).astype(dtype))
    keys = numbers.randint(1, len(operands))
    k = numbers.randint(1, min(extent, 40))
    first = operands[0].dtype != "bool"
    program = numbers.choice(["sort", "sort", "argsort", *(["top_k", "median"] if first else [])])
    text = f"{program} of {[str(x.dtype) for x in operands]} {shape}, dim={dim}, keys={keys}, k={k}"

    def function(*arrays: Any) -> Any:
        if program == "sort":
            return jax.lax.sort(arrays, dimension=dim, num_keys=keys, is_stable=True)
        if program == "argsort":
            return jnp.argsort(arrays[0], axis=dim, stable=True), jnp.sort(arrays[0], axis=dim)
        if program == "top_k":
            return jax.lax.top_k(jnp.moveaxis(arrays[0], dim, -1), k)
        return jnp.median(arrays[0].astype("float32"), axis=dim)

    return text, function, operands


def difference(ours: Any, theirs: Any) -> str:
    """How results differ; empty if they do not."""
    for x, y in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        if x.dtype != y.dtype or x.shape != y.shape:
            return f"{x.dtype} {x.shape}, not {y.dtype} {y.shape}"
        x, y = (np.asarray(z.astype("float32") if z.dtype == "bfloat16" else z) for z in (x, y))
        if not np.array_equal(x, y, equal_nan=x.dtype.kind == "f"):
            return f"{np.count_nonzero(x != y)} of {x.size} differ"
    return ""


def drawn(number: int, longest: int) -> tuple[str, Outcome]:
    """What a sample is, and how its results differ."""
    text, function, operands = draw(number, longest)

    def outcome(options: dict[str, Any]) -> str:
        ours = polyblocks_jit_jax(function, compile_options=options)(*operands)
        return difference(ours, jax.jit(function)(*operands))

    return text, outcome


if __name__ == "__main__":
    sys.exit(sweep(__doc__, 60, 3000, drawn))
