"""Programs of science in JAX, whole: a Gaussian process, a Kalman filter, an adaptive solver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax.scipy.linalg import cho_factor, cho_solve, solve_triangular  # noqa: E402

from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax  # noqa: E402

STRICT = {"target": "cpu", "strict_target": True}


def assert_as_float64(function: Callable[..., Any], *operands: Any, rtol: float = 2e-4) -> None:
    ours = polyblocks_jit_jax(compile_options=STRICT)(function)(*operands)
    with jax.enable_x64(True):
        wide = [jnp.asarray(np.asarray(x), jnp.float64) for x in operands]
        theirs = jax.jit(function)(*wide)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol), ours, theirs)


@pytest.mark.extended
def test_a_gaussian_process_with_its_gradients() -> None:
    random = np.random.default_rng(5)
    points = np.sort(random.uniform(-3, 3, (37, 1))).astype(np.float32)
    values = np.sin(2 * points[:, 0]) + 0.1 * random.normal(size=37).astype(np.float32)
    places = np.linspace(-3, 3, 11, dtype=np.float32)[:, None]

    def kernel(parameters: Any, a: Any, b: Any) -> Any:
        far = ((a[:, None] - b[None]) / jnp.exp(parameters[0])) ** 2
        return jnp.exp(parameters[1]) * jnp.exp(-far.sum(-1) / 2)

    def likelihood(parameters: Any, x: Any, y: Any) -> Any:
        noise = jnp.exp(parameters[2]) * jnp.eye(len(x), dtype=x.dtype)
        lower = jnp.linalg.cholesky(kernel(parameters, x, x) + noise)
        white = solve_triangular(lower, y, lower=True)
        return white @ white / 2 + jnp.log(jnp.diagonal(lower)).sum()

    def fit(parameters: Any, x: Any, y: Any, at: Any) -> Any:
        loss, slope = jax.value_and_grad(likelihood)(parameters, x, y)
        noise = jnp.exp(parameters[2]) * jnp.eye(len(x), dtype=x.dtype)
        factor = cho_factor(kernel(parameters, x, x) + noise, lower=True)
        between = kernel(parameters, at, x)
        mean = between @ cho_solve(factor, y)
        spread = kernel(parameters, at, at) - between @ cho_solve(factor, between.T)
        return loss, slope, mean, jnp.diagonal(spread)

    parameters = np.array([-0.3, 0.1, -2.0], np.float32)
    assert_as_float64(fit, parameters, points, values.astype(np.float32), places, rtol=1e-3)


def test_a_kalman_filter() -> None:
    random = np.random.default_rng(6)
    seen = random.normal(size=(50, 2)).cumsum(0).astype(np.float32)
    move = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0], [0, 0, 0, 1]], np.float32)

    def track(seen: Any, move: Any) -> Any:
        look = jnp.eye(2, 4, dtype=seen.dtype)
        own, noise = 0.05 * jnp.eye(4, dtype=seen.dtype), 0.5 * jnp.eye(2, dtype=seen.dtype)

        def step(state: Any, z: Any) -> Any:
            mean, spread = state
            mean, spread = move @ mean, move @ spread @ move.T + own
            of_look = look @ spread @ look.T + noise
            gain = jnp.linalg.solve(of_look, look @ spread).T
            off = z - look @ mean
            mean, spread = mean + gain @ off, spread - gain @ look @ spread
            likely = off @ jnp.linalg.solve(of_look, off) + jnp.linalg.slogdet(of_look)[1]
            return (mean, spread), (mean, -likely / 2)

        begin = jnp.zeros(4, seen.dtype), jnp.eye(4, dtype=seen.dtype)
        return jax.lax.scan(step, begin, seen)

    assert_as_float64(track, seen, move)


def test_an_adaptive_solver_of_a_differential_equation() -> None:
    def slope(y: Any) -> Any:
        return jnp.stack([y[0] * (1.1 - 0.4 * y[1]), y[1] * (0.1 * y[0] - 0.4)])

    def solved(y: Any, end: Any) -> Any:
        """By Heun's method of second order with Euler's in it, and steps by their difference."""

        def goes_on(state: Any) -> Any:
            return state[0] < end

        def step(state: Any) -> Any:
            time, width, y, taken = state
            width = jnp.minimum(width, end - time)
            first = slope(y)
            second = slope(y + width * first)
            better = y + width / 2 * (first + second)
            error = jnp.sqrt(jnp.mean((width / 2 * (second - first) / (1e-3 + 1e-3 * y)) ** 2))
            good = error <= 1
            factor = jnp.clip(0.9 / jnp.sqrt(jnp.maximum(error, 1e-6)), 0.2, 5.0)
            return (
                jnp.where(good, time + width, time),
                width * factor,
                jnp.where(good, better, y),
                taken + 1,
            )

        zero = jnp.zeros((), y.dtype)
        return jax.lax.while_loop(goes_on, step, (zero, zero + 0.1, y, jnp.int32(0)))[2]

    begin = np.array([10.0, 5.0], np.float32)
    assert_as_float64(solved, begin, np.float32(4.0), rtol=1e-3)
    # The loop stops by what it computed.
    still = polyblocks_jit_jax(compile_options=STRICT)(solved)(begin, np.float32(0.0))
    np.testing.assert_array_equal(still, begin)
