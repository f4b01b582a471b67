"""Transformations of ``jax.experimental`` around a compiled function: ``jet`` and ``sparsify``."""

from __future__ import annotations

import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp = jax.numpy
from jax.experimental.jet import jet  # noqa: E402

from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax  # noqa: E402

X = np.linspace(0.1, 1, 12, dtype=np.float32).reshape(3, 4)
STRICT = {"strict_target": True}


def same(got, want):
    assert jax.tree.structure(got) == jax.tree.structure(want)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def kinds(function):
    report = function.polyblocks_report()
    assert report.whole, str(report)
    return [variant.kind for variant in report.variants]


def test_taylor_series_of_a_compiled_function_are_compiled():
    def f(x, y):
        return jnp.sin(x) * jnp.exp(y), (x @ y.T).sum()

    g = polyblocks_jit_jax(f, compile_options=STRICT)
    series = ((X, X * 2, X * 3), (X * 0 + 1, X * 0.5, X))
    same(jet(g, (X, X), series), jet(f, (X, X), series))
    assert kinds(g) == ["taylor"]


def test_taylor_series_where_one_argument_is_constant_and_results_do_not_vary():
    around = lambda f: lambda x: jet(lambda x: f(x, X), (x,), ((X, X),))  # noqa: E731
    f = lambda x, y: (x * y, x > 0.5, 3)  # noqa: E731
    g = polyblocks_jit_jax(f, compile_options=STRICT)
    same(jax.jit(around(g))(X), around(f)(X))
    assert kinds(g) == ["taylor"]


@pytest.mark.slow
def test_gradients_of_taylor_series():
    f = lambda x: jnp.sin(x) * x  # noqa: E731
    second = lambda f: lambda x: jet(f, (x,), ((X, X),))[1][1].sum()  # noqa: E731
    g = polyblocks_jit_jax(f, compile_options=STRICT)
    same(jax.grad(second(g))(X), jax.grad(second(f))(X))
    assert kinds(g) == ["forward", "backward"]


@pytest.mark.extended
def test_sparsify_of_a_compiled_function_is_compiled(run_python):
    """Also where it was called before ``jax.experimental.sparse`` was imported."""
    done = run_python(
        """
        import sys
        import jax
        import numpy as np
        from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax

        f = lambda m, v: jax.numpy.sin(2 * m.T @ v)
        g = polyblocks_jit_jax(f, compile_options={"strict_target": True})
        dense = np.arange(12, dtype=np.float32).reshape(3, 4) * (np.arange(4) % 2)
        dense = dense.astype(np.float32)
        v = np.ones(3, np.float32)
        want = g(dense, v)
        assert "jax.experimental.sparse" not in sys.modules
        from jax.experimental import sparse

        m = sparse.BCOO.fromdense(dense)
        for use_tracer in (False, True):
            got = sparse.sparsify(g, use_tracer=use_tracer)(m, v)
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
        scaled = sparse.sparsify(polyblocks_jit_jax(lambda m: m * 3))(m)
        assert isinstance(scaled, sparse.BCOO)
        np.testing.assert_allclose(scaled.todense(), dense * 3)
        report = g.polyblocks_report()
        kinds = [variant.kind for variant in report.variants]
        assert (report.whole, kinds) == (True, ["inference", "sparse", "sparse"]), str(report)
    """,
        preloaded="jax",
    )
    assert done.returncode == 0, done.stderr


def test_products_of_sparse_rows_are_compiled():
    from jax.experimental import sparse

    dense = np.where(np.arange(35).reshape(5, 7) % 3, 0, X[0, 1]).astype(np.float32)
    m = sparse.BCSR.fromdense(dense, nse=14)  # two more than there are
    matrix, vector = np.arange(28, dtype=np.float32).reshape(7, 4), np.ones(7, np.float32)
    f = lambda m, x, v: (m @ x, jnp.sin(m @ v))  # noqa: E731
    g = polyblocks_jit_jax(f, compile_options=STRICT)
    same(g(m, matrix, vector), (dense @ matrix, np.sin(dense @ vector)))
    assert kinds(g) == ["inference"]
    assert "cpu_csr_sparse_dense" in jax.jit(f).lower(m, matrix, vector).as_text()  # as before
