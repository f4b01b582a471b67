"""``jax.export`` of a compiled function: a module of JAX's own operations, and a line about it."""

from __future__ import annotations

import logging

import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp = jax.numpy
from jax import export  # noqa: E402

from polyblocks.errors import FallbackError  # noqa: E402
from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax  # noqa: E402

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
SHAPE = jax.ShapeDtypeStruct(X.shape, X.dtype)


def function(x):
    return jnp.tanh(x) * 2


def test_jax_export_of_a_compiled_function(caplog):
    f = polyblocks_jit_jax(function)
    with caplog.at_level(logging.WARNING, logger="polyblocks"):
        exported = export.export(f)(SHAPE)
    assert "custom_call" not in exported.mlir_module()
    again = export.deserialize(exported.serialize())
    np.testing.assert_allclose(again.call(X), np.tanh(X) * 2, rtol=1e-6)
    (line,) = caplog.messages
    assert "JAX runs function (jax.export) at" in line
    assert "test_jax_export.py:" in line
    assert "function (jax.export)" in str(f.polyblocks_report())
    np.testing.assert_allclose(f(X), np.tanh(X) * 2, rtol=1e-6)
    assert [v.outcome for v in f.polyblocks_report().variants] == ["compiled"]


def test_jax_export_inside_of_another_function_and_for_other_platforms():
    f = polyblocks_jit_jax(function)
    gradient = jax.jit(jax.grad(lambda x: f(x).sum()))
    exported = export.export(gradient, platforms=["cpu", "tpu"])(SHAPE)
    np.testing.assert_allclose(exported.call(X), 2 / np.cosh(X) ** 2, rtol=1e-5)
    (rows,) = export.symbolic_shape("rows")
    of_any_size = export.export(f)(jax.ShapeDtypeStruct((rows, 4), X.dtype))
    np.testing.assert_allclose(of_any_size.call(X[:2]), np.tanh(X[:2]) * 2, rtol=1e-6)


def test_jax_export_is_an_error_with_strict_target():
    f = polyblocks_jit_jax(function, compile_options={"strict_target": True})
    with pytest.raises(FallbackError, match=r"function \(jax.export\): .* strict_target"):
        export.export(f)(SHAPE)
