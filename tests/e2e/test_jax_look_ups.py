"""Lanes that look numbers up in the row of a loop around, of tables that lie in no cache."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp = jax.numpy

from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax  # noqa: E402


@pytest.mark.parametrize("mode", ["fill", "clip"])
@pytest.mark.parametrize(("rows", "width", "count"), [(4099, 257, 100), (2051, 511, 1037)])
def test_rows_of_odd_lengths(rows: int, width: int, count: int, mode: str) -> None:
    random = np.random.default_rng(0)
    x = random.standard_normal((rows, width), np.float32)
    x[::7, ::5] = np.nan
    i = random.integers(-2 * width, 2 * width, (rows, count), np.int32)
    i[-1] = [width - 1] * count

    def function(x, i):
        return jnp.sqrt(jnp.abs(jnp.take_along_axis(x, i, 1, mode=mode))) + 1

    found = polyblocks_jit_jax(function, compile_options={"strict_target": True})(x, i)
    np.testing.assert_allclose(found, function(x, i), rtol=1e-6)


def test_columns_of_a_transposed_table() -> None:
    random = np.random.default_rng(1)
    x = random.standard_normal((130, 2049), np.float32)
    i = random.integers(-130, 130, (2049, 65), np.int32)

    def function(x, i):
        return jnp.take_along_axis(x.T, i, 1) * jnp.float32(2)

    found = polyblocks_jit_jax(function, compile_options={"strict_target": True})(x, i)
    np.testing.assert_array_equal(found, function(x, i))
