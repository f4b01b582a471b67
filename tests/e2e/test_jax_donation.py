"""Results that take over the memory of donated arguments."""

from __future__ import annotations

import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp = jax.numpy
from jax import lax  # noqa: E402
from left_to_jax import solve  # noqa: E402

from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Some donated buffers were not usable")

STRICT = {"target": "cpu", "strict_target": True}
X = np.random.default_rng(5).standard_normal((64, 48)).astype(np.float32)
ROWS = np.random.default_rng(6).integers(0, 64, 300)


def compiled(function, **donation):
    return polyblocks_jit_jax(function, compile_options=STRICT, **donation)


def inner_bytes(function, *args):
    """Bytes that XLA needs beside arguments and results: copies of arguments, above all."""
    return function.lower(*args).compile().memory_analysis().temp_size_in_bytes


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x * y + 1,
        pytest.param(lambda x, y: x[::-1] + y, marks=pytest.mark.slow),
        lambda x, y: jnp.roll(x, 1, 0) + jnp.roll(x, -1, 1),
        pytest.param(lambda x, y: x - x.mean(0) + x[0], marks=pytest.mark.slow),
        lambda x, y: x.at[ROWS].add(y[ROWS % 7]),
        pytest.param(lambda x, y: x.at[2:9].set(x[5:12] * 2), marks=pytest.mark.slow),
        lambda x, y: lax.fori_loop(0, 5, lambda i, c: c.at[1:].add(c[:-1] * 0.5) * y, x),
        pytest.param(lambda x, y: (x @ y.T) @ x * 1e-2, marks=pytest.mark.slow),
        lambda x, y: jnp.sort(x, axis=0),
        lambda x, y: jnp.zeros_like(x),
        lambda x, y: y,
    ],
    ids="pointwise reversed rolled mean scatter rows loop product sorted zeros other".split(),
)
def test_results_are_right_whatever_is_read_when(function):
    want = jax.jit(function)(X, X + 1)
    for donated in (0, (0, 1)):
        x, y = jnp.array(X), jnp.array(X + 1)
        np.testing.assert_allclose(
            compiled(function, donate_argnums=donated)(x, y), want, rtol=1e-5, atol=1e-5
        )
        if donated == 0:
            np.testing.assert_array_equal(y, X + 1)


def test_the_result_lies_where_the_argument_lay():
    f = compiled(lambda x, y: x * 2 + y, donate_argnums=0)
    x = jnp.array(X)
    place = x.unsafe_buffer_pointer()
    result = f(x, X)
    assert x.is_deleted()
    assert result.unsafe_buffer_pointer() == place
    np.testing.assert_array_equal(result, X * 2 + X)
    assert inner_bytes(f, X, X) < X.nbytes


@pytest.mark.parametrize(
    ("donation", "args", "kwargs"),
    [
        ({"donate_argnums": (1,)}, (2.0, X), {}),
        ({"donate_argnames": "state"}, (2.0, X), {}),
        ({"donate_argnames": ["state"]}, (2.0,), {"state": X}),
        ({"donate_argnums": 1}, (2.0,), {"state": X}),
    ],
    ids=["by number", "by name", "as keyword", "keyword by number"],
)
def test_ways_to_name_it(donation, args, kwargs):
    f = compiled(lambda scale, state: state * scale, **donation)
    lowered = f.lower(*args, **kwargs)
    assert lowered.compile().memory_analysis().alias_size_in_bytes == X.nbytes
    assert "output_operand_aliases" in lowered.as_text()
    np.testing.assert_array_equal(f(*args, **kwargs), X * 2)


@pytest.mark.parametrize("donation", [{"donate_argnums": 1}, {"donate_argnames": "state"}])
def test_beside_arguments_that_hold_functions(donation):
    f = compiled(lambda layer, state, x: layer["act"](state) * layer["w"] + x, **donation)
    for act in (jnp.negative, jnp.abs):
        for args, kwargs in (((jnp.array(X), X), {}), ((), {"x": X, "state": jnp.array(X)})):
            state = args[0] if args else kwargs["state"]
            w = jnp.array(X)
            place = state.unsafe_buffer_pointer()
            result = f({"act": act, "w": w}, *args, **kwargs)
            assert state.is_deleted()
            assert not w.is_deleted()
            assert result.unsafe_buffer_pointer() == place
            np.testing.assert_allclose(result, act(X) * X + X, rtol=1e-5, atol=1e-6)


def test_trees_of_results_and_arguments():
    """The results are paired with arguments of their shape; those without one are new."""

    def step(state, gradient):
        m = 0.9 * state["m"] + gradient
        return {"m": m, "w": state["w"] - 0.1 * m, "count": state["count"] + 1}, (m * m).sum()

    f = compiled(step, donate_argnums=0)
    state = {"m": jnp.zeros((64, 48)), "w": jnp.array(X), "count": jnp.int32(0)}
    want = {"m": np.zeros_like(X), "w": X, "count": 0}
    places = {state[k].unsafe_buffer_pointer() for k in "mw"}
    for _ in range(3):
        state, norm = f(state, X)
        want, expected = jax.jit(step)(want, X)
        np.testing.assert_allclose(norm, expected, rtol=1e-5)
        assert {state[k].unsafe_buffer_pointer() for k in "mw"} == places
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), state, want)


def test_inside_of_another_function_the_argument_is_kept_where_it_is_read_again():
    f = compiled(lambda x: x * 2, donate_argnums=0)
    x = jnp.array(X)
    a, b = jax.jit(lambda x: (f(x), x + f(x)))(x)
    np.testing.assert_array_equal(a, X * 2)
    np.testing.assert_array_equal(b, X + X * 2)
    np.testing.assert_array_equal(x, X)
    slopes = jax.jit(jax.grad(lambda x: (f(x) * x).sum()))(x)
    np.testing.assert_array_equal(slopes, X * 4)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(jax.vmap(f)(x), X * 2)


def test_an_argument_that_numpy_still_sees_is_copied():
    f = compiled(lambda x: x + 1, donate_argnums=0)
    x = jnp.array(X)
    seen = np.asarray(x)
    np.testing.assert_array_equal(f(x), X + 1)
    np.testing.assert_array_equal(seen, X)


def test_a_program_that_runs_several_times_does_not_feed_itself():
    f = polyblocks_jit_jax(
        lambda x: x * 2, compile_options={**STRICT, "num_iters": 3}, donate_argnums=0
    )
    np.testing.assert_array_equal(f(jnp.array(X)), X * 2)


def test_parts_between_what_jax_runs_itself():
    f = polyblocks_jit_jax(lambda x: solve(x * 2) + x, donate_argnums=0)
    np.testing.assert_allclose(f(jnp.array(X)), X * 1.5, rtol=1e-6)


def test_a_gpu_writes_back_to_the_host():
    options = {"target": "nvgpu", "arch": "sm_90a", "simulate": True}
    f = polyblocks_jit_jax(
        lambda x, y: (x[::-1] + y, (x * y).sum(1)), compile_options=options, donate_argnums=0
    )
    x, y = X[:16, :24], X[16:32, :24]
    got = f(jnp.array(x), y)
    np.testing.assert_allclose(got[0], x[::-1] + y, rtol=1e-6)
    np.testing.assert_allclose(got[1], (x * y).sum(1), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "update",
    [
        lambda cache, new, at: cache.at[:, at].set(new),
        lambda cache, new, at: lax.dynamic_update_slice(cache, new[:, None], (0, at, 0)),
        lambda cache, new, at: cache.at[:, 3].set(new),
    ],
    ids="at slice constant".split(),
)
@pytest.mark.parametrize("place", [5, -1, 100])
def test_a_row_of_a_cache_is_stored_without_a_copy_of_the_cache(update, place):
    def step(cache, new, at):
        cache = update(cache, new, at)
        return cache, jax.nn.softmax(cache.sum(2))

    rows = np.random.default_rng(7)
    cache, new = (rows.standard_normal(s).astype(np.float32) for s in ((3, 37, 19), (3, 19)))
    want = jax.jit(step)(cache, new, place)
    f = compiled(step, donate_argnums=0)
    got = f(jnp.array(cache), jnp.array(new), place)
    for result, expected in zip(got, want, strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)
    (part,) = f.polyblocks_report().to_json()["parts"]
    copies = [k["estimate"]["floor_bytes"] for k in part["kernels"] if k["kind"] == "copy"]
    assert all(nbytes < cache.nbytes for nbytes in copies)
