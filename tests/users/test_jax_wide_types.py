"""Functions of 64-bit values that are compiled while ``jax_enable_x64`` is off."""

from __future__ import annotations

import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp = jax.numpy
from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax  # noqa: E402

STRICT = {"strict_target": True}
RTOL = {4: 1e-6, 8: 1e-12}  # by bytes of an element


def wide(values, dtype):
    with jax.enable_x64(True):
        return jnp.asarray(values, dtype)


def check(function, *args):
    """That it gives what ``jax.jit`` gives, of the same type."""
    got = polyblocks_jit_jax(function, compile_options=STRICT)(*args)
    want = jax.jit(function)(*args)
    assert got.dtype == want.dtype
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=RTOL[want.dtype.itemsize])


@pytest.mark.parametrize("dtype", ["int64", "uint64", "float64"])
def test_arrays_made_under_the_setting(dtype):
    check(lambda n: n * 2 + 1, wide([0, 1, 2**40, 3], dtype))


@pytest.mark.parametrize(
    "function",
    [jnp.sin, lambda x: jax.lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) * 2 + c, x)],
    ids=["operator", "loop"],
)
def test_a_derivative_is_taken_under_the_setting_and_called_outside(function):
    compiled = polyblocks_jit_jax(function, compile_options=STRICT)
    with jax.enable_x64(True):
        x = jnp.arange(4.0)
        results = [jax.vjp(f, x) for f in (compiled, jax.jit(function))]
    (got, want) = (pull(y)[0] for y, pull in results)
    assert got.dtype == want.dtype == np.float64
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=RTOL[want.dtype.itemsize])


def test_narrow_values_stay_narrow_under_the_setting():
    x = jnp.arange(4.0)
    with jax.enable_x64(True):
        check(lambda x: jnp.sin(x) * 2, x)
