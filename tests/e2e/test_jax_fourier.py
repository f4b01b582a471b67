"""JAX: Fourier transforms, their chains and gradients are compiled whole."""

from __future__ import annotations

import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp = jax.numpy
from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax  # noqa: E402

STRICT = {"strict_target": True}
REAL = np.random.default_rng(0).standard_normal((4, 6, 10)).astype(np.float32)
COMPLEX = REAL + 1j * REAL[::-1]


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (lambda z: (jnp.fft.fft(z), jnp.fft.ifft(z, axis=0)), COMPLEX),
        (lambda z: jnp.fft.fft(z, n=53, norm="ortho"), COMPLEX),
        pytest.param(lambda z: jnp.fft.ifftn(z), COMPLEX, marks=pytest.mark.slow),
        (lambda x: (jnp.fft.rfft(x), jnp.fft.rfft(x, n=7), jnp.fft.rfft2(x)), REAL),
        (lambda z: (jnp.fft.irfft(z), jnp.fft.irfft(z, n=7), jnp.fft.irfftn(z)), COMPLEX),
        (lambda x: jnp.fft.irfft(jnp.fft.rfft(x) * jnp.fft.rfft(x[::-1]), x.shape[-1]), REAL),
        (jax.grad(lambda x: (jnp.abs(jnp.fft.fft(x)) ** 3).sum()), REAL),
        pytest.param(
            jax.grad(lambda x: (jnp.fft.irfft(jnp.fft.rfft(x) * 1j) ** 3).sum()),
            REAL,
            marks=pytest.mark.slow,
        ),
        (lambda z: jnp.fft.fft(z[:0]), COMPLEX),
    ],
    ids=["c2c", "prime", "nd", "r2c", "c2r", "chain", "gradient", "gradient of c2r", "empty"],
)
def test_transforms_equal_jax(function, x):
    got = polyblocks_jit_jax(function, compile_options=STRICT)(x)
    want = function(x)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5 * max(1, np.abs(b).max(initial=0)))
