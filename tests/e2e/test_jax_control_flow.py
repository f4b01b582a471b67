"""Loops and branches of JAX programs: compiled whole, equal to JAX's."""

from __future__ import annotations

import numpy as np
import pytest
from sweeps import sweep

jax = pytest.importorskip("jax")
jnp, lax = jax.numpy, jax.lax
from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax  # noqa: E402

STRICT = {"strict_target": True}
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def check(f, *args, rtol=1e-5):
    compiled = polyblocks_jit_jax(f, compile_options=STRICT)
    got, want = compiled(*args), jax.jit(f)(*args)
    assert jax.tree.structure(got) == jax.tree.structure(want)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)
    assert compiled.polyblocks_report().whole


def test_fori_loop():
    check(lambda x: lax.fori_loop(0, 50, lambda i, c: jnp.sin(c) + i * 0.01, x), X)
    check(lambda x, n: lax.fori_loop(0, n, lambda i, c: c * 1.01, x), X, 17)
    check(lambda x, n: lax.fori_loop(0, n, lambda i, c: c * 1.01, x), X, 0)
    check(lambda x: lax.fori_loop(2, 5, lambda i, c: c.at[i - 2].set(c[i - 2] + i), x), X)


@pytest.mark.each_choice
@pytest.mark.parametrize("steps", sweep([1, 2, 7, 8, 11], 1, 7, 8))
@pytest.mark.parametrize("border", ["kept", "reflected", "periodic"])
def test_steps_of_a_stencil(steps, border):
    """Several are one iteration; states of several arrays, of which one is what another one was."""

    def blurred(x):
        if border == "periodic":
            around = jnp.roll(x, 1, 0) + jnp.roll(x, -1, 0) + jnp.roll(x, 1, 1)
            return 0.5 * x + 0.1 * around
        if border == "reflected":
            wide = jnp.pad(x, 1, mode="reflect")
            return 0.5 * x + 0.1 * (wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, 2:])
        inner = 0.5 * x[1:-1, 1:-1] + 0.1 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, 2:])
        return x.at[1:-1, 1:-1].set(inner)

    def waves(x):
        return lax.fori_loop(0, steps, lambda _, c: (c[1], blurred(c[1]) - 0.3 * c[0]), (x, 2 * x))

    image = np.random.default_rng(4).standard_normal((67, 83), dtype=np.float32)
    image[5, 7], image[40, 2] = np.inf, np.nan
    check(waves, image)


def test_while_loop():
    check(lambda x: lax.while_loop(lambda c: c.sum() < 100, lambda c: c + jnp.abs(c), x), X + 2)
    check(
        lambda x: lax.while_loop(
            lambda c: (c[0] < 20) & (c[1].max() < 5), lambda c: (c[0] + 1, c[1] * 1.3), (0, x)
        ),
        X,
    )
    check(lambda x: lax.while_loop(lambda c: c[0] < 0, lambda c: (c[0] + 1, c[1]), (0, x)), X)


def test_scan():
    def step(carry, x):
        carry = carry * 0.9 + x
        return carry, (carry.sum(), carry[::-1])

    check(lambda x: lax.scan(step, x[0], x), X)
    check(lambda x: lax.scan(step, x[0], x, reverse=True), X)
    check(lambda x: lax.scan(step, x[0], x, unroll=2), X)
    check(lambda x: lax.scan(lambda c, _: (jnp.tanh(c * 1.1), None), x, length=1000), X)
    check(lambda x: lax.map(lambda r: r * r.sum(), x), X)
    check(lambda x: lax.associative_scan(jnp.multiply, x), X)


@pytest.mark.simulated
def test_cond_and_switch():
    f = lambda p, x: lax.cond(p, lambda x: x * 2, lambda x: x.at[0].set(-1), x)  # noqa: E731
    for p in (True, False):
        check(f, p, X)
    g = lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda x: x * 3], x)  # noqa: E731
    for i in (-5, 0, 1, 2, 9):
        check(g, i, X)


def test_nested():
    def f(x):
        def outer(i, c):
            def inner(carry):
                n, y = carry
                y = lax.cond(y.sum() > 0, lambda y: y * 0.5, lambda y: y + i, y)
                return n + 1, y

            return lax.while_loop(lambda c: (c[0] < 4) & (c[1].max() < 9), inner, (0, c))[1]

        return lax.fori_loop(0, 6, outer, x)

    check(f, X)


def test_a_matrix_in_a_loop():
    w = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32) / 2

    def f(x, w):
        return lax.scan(lambda h, _: (jnp.tanh(h @ w), h[0]), x, length=30)

    check(f, X, w)
    check(jax.grad(lambda w: f(X, w)[0].sum()), w)


def test_gradient_descent_in_a_scan():
    """Multidimensional scaling: points in the plane that keep given distances."""
    points = np.random.default_rng(1).normal(size=(12, 3)).astype(np.float32)
    wanted = np.linalg.norm(points[:, None] - points[None], axis=-1)

    def stress(p):
        d = jnp.sqrt(jnp.sum((p[:, None] - p[None]) ** 2, -1) + 1e-6)
        return jnp.sum((d - wanted) ** 2)

    def f(p):
        step = lambda p, _: (p - 0.005 * jax.grad(stress)(p), None)  # noqa: E731
        return lax.scan(step, p, length=100)[0]

    check(f, points[:, :2], rtol=1e-3)


def test_random_numbers_in_a_loop():
    def f(key):
        def step(key, _):
            key, sub = jax.random.split(key)
            return key, jax.random.uniform(sub, (3,))

        return lax.scan(step, key, length=5)[1]

    check(f, jax.random.PRNGKey(7), rtol=0)


def test_rows_that_do_not_need_each_other_are_one_kernel():
    import polyblocks

    rows = np.random.default_rng(0).standard_normal((301, 2003)).astype(np.float32)

    def mapped(x):
        return lax.map(lambda r: r / jnp.sqrt((r * r + 1).sum()), x)

    def running(x):
        return lax.scan(lambda c, r: (c + r, c * r), x[0], x)[1]

    for f in (mapped, running):
        check(f, rows)
        check(lambda x, f=f: lax.map(f, x), np.stack([rows, rows + 1]))
    (part,) = polyblocks.explain(mapped, rows, compile_options={"target": "cpu"}).parts
    assert max(k["parallel"] for k in part.kernels) == 301
    (part,) = polyblocks.explain(running, rows, compile_options={"target": "cpu"}).parts
    assert max(k["parallel"] for k in part.kernels) < 301
