"""Derivatives and batches OF a compiled function are compiled: JAX's transformations around it."""

from __future__ import annotations

import functools
import json
import logging

import numpy as np
import pytest
from sweeps import sweep

jax = pytest.importorskip("jax")
jnp = jax.numpy
from jax.experimental import checkify  # noqa: E402
from left_to_jax import solve  # noqa: E402

from polyblocks.errors import FallbackError  # noqa: E402
from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax  # noqa: E402

W = np.linspace(-1, 1, 14, dtype=np.float32).reshape(7, 2)
X = np.random.default_rng(0).normal(size=(3, 7)).astype(np.float32)
STRICT = {"strict_target": True}


def loss(w, x):
    return (jnp.tanh(x @ w) ** 2).sum()


def same(got, want, tolerance=1e-4):
    assert jax.tree.structure(got) == jax.tree.structure(want)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def kinds(function):
    """How what was compiled was derived; nothing was left to JAX, and the report says what ran."""
    report = function.polyblocks_report()
    assert report.whole, str(report)
    assert all(variant.outcome == "compiled" for variant in report.variants)
    assert "not called yet" not in str(report)
    assert "nothing to compute" not in str(report)
    json.dumps(report.to_json())
    return [variant.kind for variant in report.variants]


#: name -> the transformation, and how what is compiled is derived, in order.
AROUND = {
    "grad": (jax.grad, ["forward", "backward"]),
    "value_and_grad": (
        lambda f: jax.value_and_grad(f, argnums=(0, 1)),
        ["forward", "backward"],
    ),
    "jit_of_grad": (lambda f: jax.jit(jax.grad(f)), ["forward", "backward"]),
    "vjp": (lambda f: lambda w, x: jax.vjp(f, w, x)[1](np.float32(2)), ["forward", "backward"]),
    "jvp": (lambda f: lambda w, x: jax.jvp(f, (w, x), (W, X)), ["jvp"]),
    "linearize": (
        lambda f: lambda w, x: jax.linearize(f, w, x)[1](w, x),
        ["forward", "tangents"],
    ),
    "jacfwd": (jax.jacfwd, ["jvp"]),
    "vmap": (lambda f: lambda w, x: jax.vmap(f, (None, 0))(w, x), ["batched"]),
    "vmap_of_grad": (
        lambda f: lambda w, x: jax.vmap(jax.grad(f), (None, 0))(w, x),
        ["forward", "backward"],
    ),
    "hessian": (lambda f: jax.hessian(f, argnums=1), ["jvp", "jvp"]),
    "checkpoint": (
        lambda f: jax.grad(jax.checkpoint(lambda w, x: f(w, x) ** 2)),
        ["forward", "forward", "backward"],
    ),
}


@pytest.mark.parametrize(
    "name",
    sweep(AROUND, "value_and_grad", "jvp", "linearize", "vmap", "vmap_of_grad", "checkpoint"),
)
def test_transformation_of_a_compiled_function_is_compiled(name):
    around, expected = AROUND[name]
    f = polyblocks_jit_jax(loss, compile_options=STRICT)
    same(around(f)(W, X), around(loss)(W, X))
    assert kinds(f) == expected


@pytest.mark.slow
def test_third_derivative_of_a_compiled_function():
    def f(x):
        return (jnp.sin(x) * x**3).sum()

    third = lambda f: jax.jacfwd(jax.jacrev(jax.grad(f)))  # noqa: E731
    g = polyblocks_jit_jax(f, compile_options=STRICT)
    same(third(g)(X[0]), third(f)(X[0]), 1e-3)
    assert kinds(g)


@pytest.mark.slow
def test_grad_of_a_compiled_function_in_a_loop():
    """Loops are differentiated by parts: what is known, and what is linear in the tangents."""

    def descend(f):
        def step(w, x):
            return w - 0.1 * jax.grad(f)(w, x[None]), f(w, x[None])

        return lambda w, x: jax.grad(lambda w: jax.lax.scan(step, w, x)[1].sum())(w)

    g = polyblocks_jit_jax(loss, compile_options=STRICT)
    same(descend(g)(W, X), descend(loss)(W, X))
    assert {"forward", "backward"} <= set(kinds(g))


@pytest.mark.slow
def test_grad_of_a_compiled_loop():
    def f(x):
        carry, ys = jax.lax.scan(lambda c, r: (jnp.sin(c + r), c * r), jnp.zeros(7), x)
        return jax.lax.cond(x[0, 0] > 0, lambda: carry.sum(), lambda: ys.sum()) + ys.max()

    g = polyblocks_jit_jax(f, compile_options=STRICT)
    for x in (X, -X):
        same(jax.grad(g)(x), jax.grad(f)(x))
    assert kinds(g) == ["forward", "backward"]


@pytest.mark.slow
def test_custom_derivatives_of_a_compiled_function():
    @jax.custom_vjp
    def f(x):
        return x * x

    f.defvjp(lambda x: (f(x), x), lambda x, c: (c * 100 * x,))
    g = polyblocks_jit_jax(lambda x: f(x).sum(), compile_options=STRICT)
    same(jax.grad(g)(X), 100 * jnp.asarray(X))
    assert kinds(g) == ["forward", "backward"]
    with pytest.raises(TypeError, match="forward-mode autodiff"):
        jax.jvp(g, (X,), (X,))


@pytest.mark.slow
def test_integer_and_constant_arguments_of_a_gradient():
    f = lambda n, x, w: (x * n * 2.0).sum() + 0 * w.sum()  # noqa: E731
    g = polyblocks_jit_jax(f, compile_options=STRICT)
    for around in (jax.grad(g, argnums=(1, 2)), jax.grad(f, argnums=(1, 2))):
        same(around(3, X, W), (jnp.full_like(X, 6), jnp.zeros_like(W)))


@pytest.mark.parametrize("axes", [(0, None, 0), (1, 1, 2)])
def test_results_that_a_batch_does_not_change(axes):
    f = lambda w, x: (w.sum(0), (x * 2.0).sum(1), 3.0)  # noqa: E731
    g = polyblocks_jit_jax(f, compile_options=STRICT)
    x = np.stack([X, X + 1], axes[2])
    w = W if axes[1] is None else np.stack([W, W + 1], axes[1])
    around = functools.partial(jax.vmap, in_axes=(axes[1], axes[2]))
    same(around(g)(w, x), around(f)(w, x))
    assert kinds(g) == ["batched"]


def test_vmap_with_a_named_axis():
    def f(x):
        return x / jax.lax.psum(x, "batch") + jax.lax.axis_index("batch")

    g = polyblocks_jit_jax(f, compile_options=STRICT)
    around = functools.partial(jax.vmap, axis_name="batch")
    same(around(g)(X), around(f)(X))
    assert kinds(g) == ["batched"]


def test_a_part_of_the_results_under_jit():
    """What is not used is not computed: the value of the loss here."""
    g = polyblocks_jit_jax(lambda x: (jnp.sin(x).sum(), jnp.cos(x)), compile_options=STRICT)
    same(jax.jit(lambda x: g(x)[1])(X), jnp.cos(X))
    (part,) = g.polyblocks_report().parts
    assert len([row for row in part.arguments if row["role"] == "output"]) == 1


def test_linear_transpose_of_a_compiled_function():
    f = lambda x, y: 2.0 * x[::-1] + y.sum(0)  # noqa: E731
    g = polyblocks_jit_jax(f, compile_options=STRICT)
    shape = jax.ShapeDtypeStruct(X.shape, X.dtype)
    for h in (f, g):
        transposed = jax.linear_transpose(h, shape, shape)
        same(transposed(X), (2 * X[::-1], jnp.broadcast_to(X.sum(0), X.shape)))


@pytest.mark.slow
def test_what_a_derivative_cannot_compile_is_told(caplog):
    def f(x):
        return (solve(jnp.sin(x)) ** 2).sum()

    g = polyblocks_jit_jax(f)
    with caplog.at_level(logging.WARNING, logger="polyblocks"):
        same(jax.grad(g)(X), jax.grad(f)(X), 1e-2)
    report = g.polyblocks_report()
    assert {row.op for row in report.fallbacks} == {"tridiagonal_solve"}
    assert [variant.kind for variant in report.variants] == ["forward", "backward"]
    assert "JAX runs tridiagonal_solve" in caplog.text
    with pytest.raises(FallbackError, match="tridiagonal_solve: .*strict_target"):
        jax.grad(polyblocks_jit_jax(f, compile_options=STRICT))(X)


@pytest.mark.slow
def test_checkify_of_a_compiled_function():
    def f(x):
        checkify.check((x > -3).all(), "too small")
        return jnp.log(x)

    g = polyblocks_jit_jax(f)
    for errors in (checkify.user_checks, checkify.user_checks | checkify.nan_checks):
        for x in (jnp.ones(3), -jnp.ones(3), -4 * jnp.ones(3)):
            said, value = checkify.checkify(g, errors=errors)(x)
            wanted, expected = checkify.checkify(f, errors=errors)(x)
            assert (said.get() or "").split(" at ")[0] == (wanted.get() or "").split(" at ")[0]
            same(value, expected)
    assert {variant.kind for variant in g.polyblocks_report().variants} == {"checked"}


@pytest.mark.extended
def test_what_is_captured_is_captured_by_derivatives():
    """It is nothing that the forward half gives, and no constant of XLA's program around it."""
    table = jnp.asarray(np.random.default_rng(1).normal(size=(64, 7)).astype(np.float32))

    def f(x):
        return (jnp.cos(x[0]) * table).sum() * jnp.sin(x).sum()

    g = polyblocks_jit_jax(f, compile_options=STRICT)
    kept = jax.tree.leaves(jax.vjp(g, X)[1])
    assert table.shape not in [value.shape for value in kept]
    assert "64x7" not in jax.jit(jax.grad(g)).lower(X).as_text()
    same(jax.grad(g)(X), jax.grad(f)(X))
    same(jax.vmap(jax.grad(g))(X[None]), jax.vmap(jax.grad(f))(X[None]))
    same(jax.linearize(g, X)[1](X), jax.linearize(f, X)[1](X))
    assert set(kinds(g)) == {"forward", "backward", "tangents"}


def test_disable_jit_is_told(caplog):
    g = polyblocks_jit_jax(lambda x: jnp.sin(x) * 2)
    with caplog.at_level(logging.WARNING, logger="polyblocks"), jax.disable_jit():
        for _ in range(3):
            same(g(X), jnp.sin(X) * 2)
    (row,) = {row.op for row in g.polyblocks_report().fallbacks}
    assert row.endswith("(jax.disable_jit)")
    (line,) = caplog.messages
    assert "test_jax_transformations.py:" in line
    assert "not called yet" not in str(g.polyblocks_report())
