"""JAX's transformations around and inside of compiled functions."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from sweeps import sweep

jax = pytest.importorskip("jax")
jnp = jax.numpy
from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax  # noqa: E402

STRICT = {"strict_target": True}
X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
W = np.linspace(-1, 1, 8, dtype=np.float32).reshape(4, 2)


def model(w, x):
    return jnp.tanh(x @ w)


def loss(w, x):
    return (model(w, x) ** 2).sum()


compiled = polyblocks_jit_jax(model, compile_options=STRICT)


def same(got, want, rtol=1e-5):
    assert jax.tree.structure(got) == jax.tree.structure(want)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)


AROUND = {
    "grad": lambda f: jax.grad(f),
    "value_and_grad": lambda f: jax.value_and_grad(f, argnums=(0, 1)),
    "hessian": lambda f: jax.hessian(f),
    "jacfwd": lambda f: jax.jacfwd(f),
    "jacrev": lambda f: jax.jacrev(f, argnums=1),
    "jit": lambda f: jax.jit(f),
    "jit_grad": lambda f: jax.jit(jax.grad(f)),
    "vmap_grad": lambda f: jax.vmap(jax.grad(f), in_axes=(None, 0)),
    "checkpoint": lambda f: jax.grad(jax.checkpoint(f)),
    "third": lambda f: jax.jacfwd(jax.jacrev(jax.grad(f))),
    "jvp": lambda f: lambda w, x: jax.jvp(f, (w, x), (w, x)),
    "linearize": lambda f: lambda w, x: jax.linearize(f, w, x)[1](w, x),
}


@pytest.mark.parametrize(
    "axes", [(None, 0), (0, None), (1, 1), ({"w": 0}, None)], ids=["x", "w", "both", "tree"]
)
def test_vmap_of_a_compiled_function(axes):
    def f(w, x):
        w = w["w"] if isinstance(w, dict) else w
        return jnp.sin(w) * x.sum(), x * 2

    g = polyblocks_jit_jax(f, compile_options=STRICT)
    args = ({"w": W} if isinstance(axes[0], dict) else W, X[:, :2])
    same(jax.vmap(g, in_axes=axes)(*args), jax.vmap(f, in_axes=axes)(*args))
    same(jax.jit(jax.vmap(g, in_axes=axes))(*args), jax.vmap(f, in_axes=axes)(*args))


def test_a_linear_function_is_transposed():
    f = lambda x: 2.0 * x[::-1]  # noqa: E731
    g = polyblocks_jit_jax(f, compile_options=STRICT)
    same(jax.linear_transpose(g, X)(X), jax.linear_transpose(f, X)(X))


def test_integer_arguments_under_grad():
    f = lambda n, x: (x * n, n + 1)  # noqa: E731
    g = polyblocks_jit_jax(f, compile_options=STRICT)
    for h in (f, g):
        got, vjp = jax.vjp(lambda n, x, h=h: h(n, x)[0], 3, X)
        n_bar, x_bar = vjp(X)
        assert n_bar.dtype == jax.dtypes.float0
        np.testing.assert_allclose(x_bar, 3 * X)
        np.testing.assert_allclose(got, 3 * X)


@pytest.mark.parametrize(
    "name",
    sweep(
        AROUND,
        "value_and_grad",
        "hessian",
        "jacrev",
        "jit_grad",
        "vmap_grad",
        "checkpoint",
        "linearize",
    ),
)
def test_inside_of_a_compiled_function(name):
    f = AROUND[name](loss)
    g = polyblocks_jit_jax(f, compile_options=STRICT)
    same(g(W, X), f(W, X))
    assert g.polyblocks_report().whole


def test_custom_derivatives_are_kept():
    @jax.custom_vjp
    def f(x):
        return x * x

    f.defvjp(lambda x: (f(x), x), lambda x, c: (c * 100 * x,))

    @jax.custom_jvp
    def h(x):
        return jnp.sin(x)

    h.defjvp(lambda p, t: (h(*p), 7.0 * t[0]))
    g = polyblocks_jit_jax(lambda x: f(x) + h(x), compile_options=STRICT)
    np.testing.assert_allclose(g(2.0), 4.0 + np.sin(2.0), rtol=1e-6)
    np.testing.assert_allclose(jax.grad(g)(2.0), 207.0)
    inner = polyblocks_jit_jax(jax.grad(lambda x: f(x) + h(x)), compile_options=STRICT)
    np.testing.assert_allclose(inner(2.0), 207.0)


def test_a_compiled_function_in_others():
    outer = polyblocks_jit_jax(lambda w, x: compiled(w, x) + 1, compile_options=STRICT)
    same(outer(W, X), model(W, X) + 1)
    same(jax.jit(lambda w, x: compiled(w, x) + 1)(W, X), model(W, X) + 1)
    same(
        jax.lax.scan(lambda c, x: (c, compiled(c, x)), W, X[None])[1],
        jax.lax.scan(lambda c, x: (c, model(c, x)), W, X[None])[1],
    )


def test_a_closure_over_a_tracer():
    @jax.jit
    def f(x, y):
        return polyblocks_jit_jax(lambda a: a * y + x.sum(), compile_options=STRICT)(x)

    same(f(X, X), X * X + X.sum())
    same(jax.grad(lambda x: f(x, X).sum())(X), X + 12.0)


def test_names_of_arguments_are_in_the_report():
    g = polyblocks_jit_jax(lambda params, *, x: params["w"] * x)
    g({"w": X}, x=X)
    (part,) = g.polyblocks_report().parts
    assert [row["name"] for row in part.arguments if row["role"] == "input"] == ["params['w']", "x"]


def test_dispatch_is_asynchronous():
    """The call returns before a long program is done."""
    import time

    @polyblocks_jit_jax(compile_options=STRICT)
    def long(x):
        return jax.lax.fori_loop(0, 200_000, lambda i, c: jnp.sin(c) + 1e-3, x)

    def shares():
        for _ in range(5):
            begin = time.perf_counter()
            result = long(x)
            returned = time.perf_counter() - begin
            result.block_until_ready()
            yield returned / (time.perf_counter() - begin)

    x = jnp.asarray(np.ones(2000, np.float32))
    long(x).block_until_ready()
    assert min(shares()) < 0.5


def test_threads_compile_a_new_function_once():
    f = polyblocks_jit_jax(lambda x: jnp.cos(x) * 3.25 - 1)
    traced, results, start = [], [], threading.Barrier(32)

    def g(x):
        traced.append(1)
        return f(x)

    def work():
        start.wait()
        results.append(np.asarray(f(X)))

    threads = [threading.Thread(target=work) for _ in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 32
    for result in results:
        np.testing.assert_allclose(result, np.cos(X) * 3.25 - 1, rtol=1e-6)
    parts = f.polyblocks_report().parts
    assert len(parts) == 1
    assert not parts[0].cached


@pytest.mark.large
def test_concurrent_calls_have_workspaces_of_their_own():
    def f(x):
        y = jnp.sort(x)
        return jnp.cumsum(y * y.sum()) + y.max()

    g = polyblocks_jit_jax(f)
    arrays = [np.random.default_rng(i).normal(size=20_000).astype(np.float32) for i in range(8)]
    want = [np.asarray(g(a)) for a in arrays]
    wrong = []

    def work(i):
        for _ in range(30):
            if not np.array_equal(np.asarray(g(arrays[i])), want[i]):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
