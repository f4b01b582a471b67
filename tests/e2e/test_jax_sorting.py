"""Sorts of JAX and what is read of them, against XLA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sweeps import sweep

jax = pytest.importorskip("jax")
jnp = jax.numpy

from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax  # noqa: E402


def check(function: Callable[..., Any], *arguments: Any) -> None:
    """Compare with what XLA gives."""
    ours = polyblocks_jit_jax(function, compile_options={"strict_target": True})(*arguments)
    theirs = jax.jit(function)(*arguments)
    for x, y in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert x.dtype == y.dtype
        if x.dtype == jnp.bfloat16:
            # Its NaN are not equal to NumPy.
            x, y = x.astype("float32"), y.astype("float32")
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


def numbers(dtype: str, *shape: int) -> Any:
    random = np.random.default_rng(len(shape) + shape[-1])
    x = random.normal(size=shape) * 20
    if dtype.startswith(("float", "bfloat")):
        for value in (np.nan, np.inf, -np.inf, 0.0, -0.0, 3.0):
            x[random.random(shape) < 0.04] = value
    elif dtype.startswith("uint"):
        x = np.abs(x)
    return jnp.asarray(x).astype(dtype)


@pytest.mark.parametrize(
    "dtype",
    sweep(
        ["float32", "bfloat16", "float16", "int32", "uint8", "int8", "bool"],
        "float32",
        extended=["bfloat16", "int32", "bool"],
    ),
)
def test_every_dtype(dtype: str) -> None:
    x = numbers(dtype, 3, 333)
    check(lambda x: (jnp.sort(x), jnp.argsort(x), jnp.sort(x, axis=0)), x)
    if dtype != "bool":
        check(lambda x: jax.lax.top_k(x, 9), x)


def test_statistics() -> None:
    x = numbers("int32", 4, 501).astype("float32")
    check(lambda x: (jnp.median(x, axis=1), jnp.quantile(x, 0.25, axis=1, method="lower")), x)
    check(lambda x: jnp.unique(x, size=60), x)


@pytest.mark.extended
def test_what_is_taken_of_sorted_rows() -> None:
    x = numbers("int32", 4, 501).astype("float32")
    check(lambda x, v: jnp.searchsorted(jnp.sort(x), v), x[0], x[1])
    check(lambda x: jnp.sort(x, axis=1)[:, 2:7], x)


@pytest.mark.simulated
def test_on_every_target() -> None:
    x = numbers("float32", 2, 150)
    check(lambda x: (jnp.argsort(x), *jax.lax.top_k(x, 5)), x)


@pytest.mark.simulated
def test_the_first_of_a_sorted_row() -> None:
    x = numbers("float32", 2, 600)
    check(lambda x: jnp.sort(x)[:, :3], x)


def test_several_keys() -> None:
    x = numbers("int32", 3, 400) // 9
    y, z = numbers("float32", 3, 400), numbers("bfloat16", 3, 400)
    check(lambda *a: jax.lax.sort(a, num_keys=2), z, x, y)
    check(lambda x, y: jnp.sort(x + 1j * y.round()), x.astype("float32"), x.astype("float32") * 2)


@pytest.mark.extended
def test_all_keys_along_another_dimension() -> None:
    x = numbers("int32", 3, 400) // 9
    y, z = numbers("float32", 3, 400), numbers("bfloat16", 3, 400)
    check(lambda *a: jax.lax.sort(a, num_keys=2), x, y, z)
    check(lambda *a: jax.lax.sort(a, dimension=0, num_keys=3), x.T, z.T, y.T)
    check(lambda x, y: jnp.lexsort((x, y)), y, x)
