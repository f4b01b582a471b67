"""What depends on captured arrays alone is computed once, when XLA compiles the function."""

from __future__ import annotations

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

import polyblocks  # noqa: E402
from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax  # noqa: E402
from polyblocks.runtime.kept.memory import kept_bytes  # noqa: E402

# Constants are kept by CPUs alone so far.
pytestmark = [pytest.mark.cpu, pytest.mark.filterwarnings("ignore:.*captures")]


def array(*shape: int, seed: int = 0) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape, np.float32))


def layers(wide: jax.Array, narrow: jax.Array, variance: jax.Array):
    def run(x):
        y = jax.nn.relu(x @ wide.T) @ narrow.T
        return y * jax.lax.rsqrt(jnp.abs(variance) + 1e-5)

    return run


def make(seed: int = 0):
    return layers(
        array(256, 64, seed=seed), array(96, 256, seed=seed + 1), array(96, seed=seed + 2)
    )


def agree(compiled, function, *args) -> None:
    np.testing.assert_allclose(compiled(*args), function(*args), rtol=1e-4, atol=1e-3)


def test_captured_arrays_are_prepared_once():
    function, x = make(), array(64, 64, seed=9)
    compiled = polyblocks_jit_jax(function)
    before = kept_bytes()
    agree(compiled, function, x)
    kept = kept_bytes() - before
    assert kept >= 4 * 256 * 64
    assert compiled.polyblocks_report().to_json()["variants"][0]["kept_bytes"] == kept
    agree(compiled, function, 2.0 * x)
    assert kept_bytes() - before == kept


def test_equal_programs_with_other_arrays():
    x = array(64, 64, seed=9)
    for seed in (10, 20, 10):
        function = make(seed)
        agree(polyblocks_jit_jax(function), function, x)


def test_arrays_of_numpy_are_those_of_the_trace():
    weights = np.random.default_rng(0).standard_normal((256, 64)).astype(np.float32)
    x = array(64, 64, seed=9)
    compiled = polyblocks_jit_jax(lambda x: x @ weights.T)
    expected = x @ weights.T
    np.testing.assert_allclose(compiled(x), expected, rtol=1e-4, atol=1e-3)
    weights *= 2.0
    np.testing.assert_allclose(compiled(x), expected, rtol=1e-4, atol=1e-3)


def test_constants_that_somebody_puts_in_the_place_of_others():
    """A jaxpr may be evaluated with other constants than those that it was traced with."""
    weights, others = array(256, 64, seed=1), array(256, 64, seed=2)
    compiled = polyblocks_jit_jax(lambda x: x @ weights.T)
    x = array(64, 64, seed=9)
    closed = jax.make_jaxpr(compiled)(x)
    replaced = [others if np.shape(c) == (256, 64) else c for c in closed.consts]
    (result,) = jax.core.eval_jaxpr(closed.jaxpr, replaced, x)
    expected = x @ (others if replaced else weights).T
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-3)


def test_transformations_of_it():
    function, x = make(30), array(64, 64, seed=9)
    compiled = polyblocks_jit_jax(function)
    agree(compiled, function, x)
    agree(jax.grad(lambda x: compiled(x).sum()), jax.grad(lambda x: function(x).sum()), x)
    xs = jnp.stack([x, 2.0 * x])
    agree(jax.vmap(compiled), jax.vmap(function), xs)
    agree(jax.jit(lambda x: compiled(x) + 1.0), lambda x: function(x) + 1.0, x)


def test_constants_of_an_outer_trace_are_no_constants():
    x = array(64, 64, seed=9)

    @jax.jit
    def outer(weights, x):
        return polyblocks_jit_jax(lambda x: x @ weights.T)(x)

    before = kept_bytes()
    for seed in (1, 2):
        weights = array(256, 64, seed=seed)
        agree(outer, lambda weights, x: x @ weights.T, weights, x)
    assert kept_bytes() == before


def test_donated_arguments_beside_constants():
    weights = array(64, 64, seed=1)
    compiled = polyblocks_jit_jax(lambda x: x @ weights.T + x, donate_argnums=0)
    x = array(64, 64, seed=9)
    expected = x @ weights.T + x
    np.testing.assert_allclose(compiled(x), expected, rtol=1e-4, atol=1e-3)


def test_a_part_left_to_the_framework():
    weights = array(256, 64, seed=1)

    def function(x):
        return jax.lax.linalg.schur((x @ weights.T)[:, :64])[1]

    x = array(64, 64, seed=9)
    agree(polyblocks_jit_jax(function), function, x)


def test_a_file_keeps_nothing(tmp_path):
    function, x = make(40), array(64, 64, seed=9)
    artifact = polyblocks.aot(function, [x], frontend="jax")
    assert all(row["role"] != "kept" for row in artifact.manifest["arguments"])
    artifact.write(tmp_path / "f.zip")
    result = polyblocks.load(tmp_path / "f.zip")(np.asarray(x))
    np.testing.assert_allclose(result, function(x), rtol=1e-4, atol=1e-3)


def test_repeated_runs_for_timing():
    function, x = make(50), array(64, 64, seed=9)
    agree(polyblocks_jit_jax(function, compile_options={"num_iters": 3}), function, x)
