"""What cannot be compiled: left to JAX in parts, reported, refused by ``strict_target``."""

from __future__ import annotations

import json
import logging
import os

import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp = jax.numpy
from jax.lax.linalg import tridiagonal_solve  # noqa: E402
from left_to_jax import solve  # noqa: E402

from polyblocks.errors import FallbackError, TargetError  # noqa: E402
from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax  # noqa: E402

X = np.linspace(0.5, 2, 16, dtype=np.float32).reshape(4, 4)


def system(x):
    y = jnp.sin(x) * 2
    one = jnp.ones_like(y)
    z = tridiagonal_solve(0 * one, 4 * one, one, y[..., None])  # the line in the report
    return z[..., 0] * jnp.cos(y), y


def test_the_rest_is_compiled_and_the_report_names_op_reason_and_line(caplog):
    f = polyblocks_jit_jax(system)
    with caplog.at_level(logging.WARNING, logger="polyblocks"):
        for got, want in zip(f(X), system(X), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    report = f.polyblocks_report()
    (fallback,) = report.fallbacks
    line = system.__code__.co_firstlineno + 3
    assert (fallback.op, fallback.location) == ("tridiagonal_solve", f"{__file__}:{line}")
    assert "lapack" in fallback.reason
    assert not report.whole
    (variant,) = report.variants
    assert (variant.outcome, variant.parts) == ("partitioned", 2)
    assert (
        f"system: JAX runs tridiagonal_solve at {__file__}:{line}: the custom call" in caplog.text
    )
    assert "tridiagonal_solve" in str(report)
    json.dumps(report.to_json())


def test_strict_target_refuses():
    f = polyblocks_jit_jax(system, compile_options={"strict_target": True})
    line = system.__code__.co_firstlineno + 3
    told = f"tridiagonal_solve: .*strict_target.*_fallback.py:{line}"
    with pytest.raises(FallbackError, match=told):
        f(X)


def test_derivatives_and_batches_of_a_partitioned_function():
    f = polyblocks_jit_jax(lambda x: (solve(jnp.sin(x)) ** 2).sum())
    g = f.polyblocks_original
    np.testing.assert_allclose(f(X), g(X), rtol=1e-4)
    np.testing.assert_allclose(jax.grad(f)(X), jax.grad(g)(X), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(jax.vmap(f)(X), jax.vmap(g)(X), rtol=1e-4)
    np.testing.assert_allclose(jax.jit(f)(X), g(X), rtol=1e-4)


def test_linear_algebra_is_left_with_a_reason():
    def f(a):
        triangle, vectors = jax.lax.linalg.schur(a)
        return triangle * 2, vectors

    g = polyblocks_jit_jax(f)
    for got, want in zip(g(X), f(X), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    (fallback,) = g.polyblocks_report().fallbacks
    assert fallback.op == "schur"
    assert "lapack_sgees_ffi is code of a library" in fallback.reason


def test_an_unsupported_op_in_a_loop_leaves_the_loop():
    def f(x):
        y = jnp.tanh(x)
        z = jax.lax.fori_loop(0, 3, lambda i, c: solve(c), y)
        return z * 2

    g = polyblocks_jit_jax(f)
    np.testing.assert_allclose(g(X), f(X), rtol=1e-4, atol=1e-4)
    assert {fallback.op for fallback in g.polyblocks_report().fallbacks} <= {"scan", "while"}
    assert g.polyblocks_report().variants[0].parts == 2


def test_effects_happen_in_order_with_the_right_values(capfd):
    def f(x):
        jax.debug.print("a {}", x[0, 0], ordered=True)
        y = jnp.exp(x)
        jax.debug.print("b {}", y[0, 0], ordered=True)
        return y * y

    g = polyblocks_jit_jax(f)
    np.testing.assert_allclose(g(X), np.exp(X) ** 2, rtol=1e-5)
    jax.effects_barrier()
    out = capfd.readouterr().out
    assert out.index("a 0.5") < out.index("b 1.648")
    assert {fallback.op for fallback in g.polyblocks_report().fallbacks} == {"debug_print"}


def test_callbacks_run():
    seen = []

    def f(x):
        y = jax.pure_callback(
            lambda a: np.asarray(a) + 1, jax.ShapeDtypeStruct(x.shape, x.dtype), x
        )
        jax.debug.callback(lambda a: seen.append(float(a)), y[0, 0])
        return y * 2

    g = polyblocks_jit_jax(f)
    np.testing.assert_allclose(g(X), (X + 1) * 2, rtol=1e-6)
    jax.effects_barrier()
    assert seen == [1.5]


def test_dtypes_that_no_program_holds_are_left_to_jax():
    x = jnp.arange(8).astype(jnp.float8_e4m3fn)
    f = polyblocks_jit_jax(lambda x: x.astype(jnp.float32) * 2)
    np.testing.assert_array_equal(f(x), np.arange(8) * 2.0)
    assert any("float8_e4m3fn" in f.reason for f in f.polyblocks_report().fallbacks)


@pytest.mark.cpu
@pytest.mark.isolated
def test_a_crash_of_native_code_is_a_fallback(monkeypatch):
    from polyblocks import stablehlo

    lower = stablehlo.lower

    def crashing(module):
        if "stablehlo.cosine" in str(module):
            os.abort()
        return lower(module)

    monkeypatch.setattr(stablehlo, "lower", crashing)
    f = polyblocks_jit_jax(lambda x: jnp.cos(jnp.sin(x) + 3.5) * 2)
    np.testing.assert_allclose(f(X), np.cos(np.sin(X) + 3.5) * 2, rtol=1e-5)
    (fallback,) = f.polyblocks_report().fallbacks
    assert fallback.op == "cos"
    assert "SIGABRT" in fallback.reason
    assert f.polyblocks_report().variants[0].parts == 2


def test_mutable_references_are_left_to_jax():
    def inside(x):
        total = jax.new_ref(jnp.zeros(()))

        def body(i, _):
            total[...] += x[i, 0]

        jax.lax.fori_loop(0, 4, body, None)
        return total[...] * 2

    def argument(ref, x):
        ref[...] = ref[...] + x
        return x * 2

    f, g = polyblocks_jit_jax(inside), polyblocks_jit_jax(argument)
    np.testing.assert_allclose(f(X), X[:, 0].sum() * 2, rtol=1e-6)
    ref = jax.new_ref(jnp.zeros((4, 4)))
    np.testing.assert_allclose(g(ref, X), X * 2)
    np.testing.assert_allclose(ref[...], X)
    for h in (f, g):
        (fallback,) = h.polyblocks_report().fallbacks
        assert "mutable reference" in fallback.reason
        assert "_fallback.py:" in fallback.location
    with pytest.raises(FallbackError, match="mutable reference.*strict_target"):
        polyblocks_jit_jax(inside, compile_options={"strict_target": True})(X)


@pytest.mark.cpu
def test_other_devices_are_an_error():
    f = jax.jit(polyblocks_jit_jax(lambda x: x * 2))
    with pytest.raises(TargetError, match="arrays on cuda, but target 'cpu' takes arrays on the C"):
        f.trace(X).lower(lowering_platforms=("cuda",))


def test_a_plan_is_cached():
    def f(x):
        return solve(x * 1.75)

    for cached in (False, True):
        g = polyblocks_jit_jax(f)
        np.testing.assert_allclose(g(X), f(X), rtol=1e-4, atol=1e-4)
        (variant,) = g.polyblocks_report().variants
        assert variant.cached == cached
        assert len(g.polyblocks_report().fallbacks) == 1
