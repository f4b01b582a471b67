"""Compiled functions in other compiled ones: what their reports say, and whose options hold."""

from __future__ import annotations

import numpy as np
import pytest
from sweeps import sweep

jax = pytest.importorskip("jax")
jnp = jax.numpy
from left_to_jax import solve  # noqa: E402

from polyblocks.errors import FallbackError  # noqa: E402
from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax  # noqa: E402

X = np.linspace(0.5, 2, 16, dtype=np.float32).reshape(4, 4)
STRICT = {"strict_target": True}


def in_scan(f):
    return lambda x: jax.lax.scan(lambda c, row: (c, f(row)), 0, x)[1]


def in_cond(f):
    return lambda x: jax.lax.cond(x[0, 0] > 0, f, lambda x: x, x)


#: How a function is called in another.
WAYS = {
    "call": lambda f: lambda x: f(x) + 1,
    "jit": lambda f: lambda x: jax.jit(lambda x: f(x) * 2)(x),
    "scan": in_scan,
    "cond": in_cond,
    "scan in cond": lambda f: in_cond(in_scan(f)),
    "grad": lambda f: jax.grad(lambda x: f(x).sum()),
    "vmap": lambda f: lambda x: jax.vmap(f)(x) - 1,
}


@pytest.mark.parametrize("way", sweep(WAYS, "jit", "scan in cond", "grad", "vmap"))
def test_inner_report_names_the_outer_function(way):
    inner = polyblocks_jit_jax(lambda x: jnp.sin(x) * 2, compile_options=STRICT)

    def outer(x):
        return WAYS[way](inner)(x)

    compiled = polyblocks_jit_jax(outer, compile_options=STRICT)
    want = WAYS[way](inner.polyblocks_original)(X)
    np.testing.assert_allclose(compiled(X), want, rtol=1e-5)
    report = inner.polyblocks_report()
    assert report.callers == ["outer"]
    assert "compiled as a part of outer" in str(report)
    assert "not called yet" not in str(report)
    assert compiled.polyblocks_report().callers == []


def test_every_function_between_is_named():
    first = polyblocks_jit_jax(lambda x: jnp.sin(x))
    second = polyblocks_jit_jax(lambda x: first(x) * 2)
    third = polyblocks_jit_jax(in_scan(second))
    np.testing.assert_allclose(third(X), jnp.sin(X) * 2, rtol=1e-6)
    assert first.polyblocks_report().callers == second.polyblocks_report().callers == ["<lambda>"]


@pytest.mark.parametrize("way", sweep(WAYS, "call", "scan in cond", "vmap"))
def test_strict_target_of_the_inner_function_holds(way):
    inner = polyblocks_jit_jax(solve, compile_options=STRICT)
    outer = polyblocks_jit_jax(WAYS[way](inner))
    with pytest.raises(FallbackError, match=r"tridiagonal_solve.*strict_target.* at .*\.py:"):
        outer(X)


def test_strict_target_of_the_inner_function_names_it():
    inner = polyblocks_jit_jax(solve, compile_options=STRICT)
    between = polyblocks_jit_jax(lambda x: inner(x) + 1)
    told = "tridiagonal_solve: .*strict_target of solve forbids that JAX"
    with pytest.raises(FallbackError, match=told):
        polyblocks_jit_jax(lambda x: between(x) * 2)(X)


def test_strict_target_of_the_inner_function_is_no_matter_of_the_outer():
    inner = polyblocks_jit_jax(lambda x: jnp.sin(x), compile_options=STRICT)

    def outer(x):
        return solve(inner(x))

    compiled = polyblocks_jit_jax(outer)
    np.testing.assert_allclose(compiled(X), np.sin(X) / 4, rtol=1e-4, atol=1e-4)
    assert [row.op for row in compiled.polyblocks_report().fallbacks] == ["tridiagonal_solve"]
    assert inner.polyblocks_report().callers == ["outer"]
    assert not inner.polyblocks_report().fallbacks


def test_a_function_in_a_loop_that_jax_runs_is_compiled_by_itself():
    inner = polyblocks_jit_jax(lambda x: jnp.sin(x), compile_options=STRICT)
    outer = polyblocks_jit_jax(in_scan(lambda row: inner(solve(row))))
    np.testing.assert_allclose(outer(X), np.sin(X / 4), rtol=1e-3, atol=1e-4)
    assert [row.op for row in outer.polyblocks_report().fallbacks] == ["scan"]
    report = inner.polyblocks_report()
    assert report.whole
    assert report.callers == []
