"""An operation that is left to JAX: a solver that JAX calls a library for."""

from __future__ import annotations

from typing import Any


def solve(x: Any) -> Any:
    """The solution of a tridiagonal system for each row of ``x``; linear in it."""
    import jax.numpy as jnp
    from jax.lax.linalg import tridiagonal_solve

    one = jnp.ones_like(x)
    # Without neighbours: NumPy knows the solution, a quarter of the right-hand side.
    return tridiagonal_solve(0 * one, 4 * one, 0 * one, x[..., None])[..., 0]
