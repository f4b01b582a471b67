"""JAX's switches for debugging: they do for compiled functions what they do for ``jax.jit``'s."""

from __future__ import annotations

import numpy as np
import pytest
from sweeps import sweep

jax = pytest.importorskip("jax")
jnp = jax.numpy
from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax  # noqa: E402

X = jnp.linspace(-1, 2, 4)


def logarithm(x):
    return jnp.log(x) * 2


#: What makes a NaN, of a decorator; and the operation that JAX names.
PROGRAMS = {
    "function": (lambda jit: jit(logarithm)(X), "log"),
    "second call": (lambda jit: _both(jit(logarithm)), "log"),
    "no arguments": (lambda jit: jit(lambda: logarithm(jnp.float32(-1)))(), "log"),
    "constant": (lambda jit: jit(lambda y: y + logarithm(X))(X), "log"),
    "keyword": (lambda jit: jit(lambda *, tree: logarithm(tree["x"]))(tree={"x": X}), "log"),
    "inner": (lambda jit: jit(lambda x: jax.jit(logarithm)(x) + 1)(X), "log"),
    "outer": (lambda jit: jax.jit(lambda x: jit(logarithm)(x) + 1)(X), "log"),
    "both": (lambda jit: jit(lambda x: jit(logarithm)(x) + 1)(X), "log"),
    "donated": (lambda jit: jit(logarithm, donate_argnums=0)(X + 0), "log"),
    "loop": (lambda jit: jit(lambda x: jax.lax.map(jnp.log, x))(X), "scan"),
    "in a loop": (lambda jit: jax.lax.map(jit(jnp.log), X), "scan"),
    "vmap": (lambda jit: jax.vmap(jit(logarithm))(X[None]), "log"),
    "grad of it": (lambda jit: jax.grad(jit(lambda x: jnp.sqrt(x).sum() * 0))(0 * X), "mul"),
    "grad in it": (lambda jit: jit(jax.grad(lambda x: jnp.sqrt(x).sum() * 0))(0 * X), "mul"),
    "a while tracing": (lambda jit: jit(lambda y: y + _now(jit))(X), "log"),
}


def _both(f):
    f(X + 2)
    return f(X)


def _now(jit):
    with jax.ensure_compile_time_eval():
        return jit(logarithm)(X)


@pytest.mark.parametrize(
    "name",
    sweep(
        PROGRAMS,
        "function",
        "no arguments",
        "inner",
        "outer",
        "donated",
        "loop",
        "in a loop",
        "vmap",
        "grad of it",
        "a while tracing",
    ),
)
def test_debug_nans_names_the_operation(name):
    run, operation = PROGRAMS[name]
    for jit in (jax.jit, polyblocks_jit_jax):
        with (
            jax.debug_nans(True),
            pytest.raises(FloatingPointError, match=rf"invalid value \(nan\) .* in {operation}\b"),
        ):
            run(jit)
        # Without the switch a NaN is a number like others.
        assert np.isnan(run(jit)).any()


@pytest.mark.extended
def test_debug_nans_of_the_whole_process(run_python):
    # Another process: JAX no longer hears of it where the context manager has been used.
    code = """
        import jax, jax.numpy as jnp
        from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax

        jax.config.update("jax_debug_nans", True)
        f = polyblocks_jit_jax(jnp.log)
        assert (f(jnp.ones(3)) == 0).all()
        assert [v.outcome for v in f.polyblocks_report().variants] == ["compiled"]
        f(-jnp.ones(3))
    """
    lines = run_python(code, preloaded="jax").stderr.splitlines()
    assert "FloatingPointError: invalid value (nan) encountered in log" in lines


def test_debug_nans_lets_pass_what_is_no_result():
    f = polyblocks_jit_jax(lambda x: jnp.where(x > 0, jnp.log(x), x) + jnp.var(x))
    want = jax.jit(f.polyblocks_original)(X)
    with jax.debug_nans(True):
        np.testing.assert_allclose(f(X), want, rtol=1e-6)


def test_debug_nans_where_no_operation_makes_it():
    f = polyblocks_jit_jax(lambda x: (x + 1, jnp.nan))
    with (
        jax.debug_nans(True),
        pytest.raises(FloatingPointError, match="de-optimized function did not produce invalid"),
    ):
        f(X)


def test_debug_nans_of_functions_with_functions_in_their_arguments():
    f = polyblocks_jit_jax(lambda tree: tree["f"](tree["x"]))
    with (
        jax.debug_nans(True),
        pytest.raises(FloatingPointError, match="invalid value \\(nan\\) encountered in log\\b"),
    ):
        f({"f": jnp.log, "x": X})


@pytest.mark.parametrize("outcome", ["compiled", "partitioned"])
def test_debug_infs(outcome):
    f = polyblocks_jit_jax(
        lambda x: 1 / x + (jax.lax.linalg.schur(jnp.eye(4))[0] if outcome == "partitioned" else 0)
    )
    with (
        jax.debug_infs(True),
        pytest.raises(FloatingPointError, match="invalid value \\(inf\\) encountered in div\\b"),
    ):
        f(0 * X)
    with jax.debug_infs(True):
        assert np.isfinite(f(X + 2)).all()
    assert [v.outcome for v in f.polyblocks_report().variants] == [outcome]


@pytest.mark.parametrize("switch", ["debug_nans", "disable_jit"])
def test_step_by_step(switch):
    """The primitive itself, on arrays: outside of any trace."""
    closed = jax.make_jaxpr(polyblocks_jit_jax(logarithm))(X).eqns[0].params["jaxpr"]
    run = lambda x: jax.core.eval_jaxpr(closed.jaxpr, closed.consts, x)  # noqa: E731
    with getattr(jax, switch)(True):
        np.testing.assert_allclose(run(X + 2)[0], np.log(X + 2) * 2, rtol=1e-6)
        if switch == "debug_nans":
            with pytest.raises(FloatingPointError, match="encountered in log\\b"):
                run(X)


def test_checking_leaks():
    f = polyblocks_jit_jax(lambda x: jax.jit(logarithm)(x) + jax.random.uniform(jax.random.key(0)))
    with jax.checking_leaks():
        np.testing.assert_allclose(f(X + 2), jax.jit(f.polyblocks_original)(X + 2), rtol=1e-6)
    leaked = []
    g = polyblocks_jit_jax(lambda x: (leaked.append(x), x + 1)[1])
    with jax.checking_leaks(), pytest.raises(Exception, match="Leaked"):
        g(X)
