"""JAX programs, compiled and operation by operation: how rows are called, what is compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from arrays_run import leaves_differ, made, raised, said
from cases import Case, Group
from forked_sweep import Outcome

from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax


def _given(values: list[Any]) -> list[Any]:
    return [jnp.asarray(v) if isinstance(v, np.ndarray) and v.dtype.isnative else v for v in values]


def called(function: Callable[..., Any], make: Callable[[], list[Any]]) -> Any:
    """Two calls."""
    return [function(*_given(make())) for _ in range(2)]


def gradients(function: Callable[..., Any], make: Callable[[], list[Any]]) -> Any:
    """The function, and the gradients of a sum of its results by its real arguments."""
    arguments = _given(make())
    real = tuple(i for i, x in enumerate(arguments) if jnp.issubdtype(x.dtype, jnp.inexact))

    def loss(*values: Any) -> Any:
        rows = jax.tree.leaves(function(*values))
        return sum(
            (y * jnp.linspace(0.5, 2.5, y.size).reshape(y.shape)).real.sum()
            for y in rows if jnp.issubdtype(y.dtype, jnp.inexact)
        )  # fmt: skip

    return function(*arguments), jax.grad(loss, real)(*arguments)


def group(name: str, call: Callable[..., Any] = called) -> Group:
    """A group of cases for JAX."""
    return Group(name, made, call)


def check(case: Case) -> Outcome:
    """Run one case both ways, with types of 64 bits."""
    with jax.enable_x64(True):
        return _check(case)


def _check(case: Case) -> Outcome:
    expected = _seen(case, lambda function, **options: function)
    compiled: list[Any] = []

    def jit(function: Any, **options: Any) -> Any:
        result = polyblocks_jit_jax(function, compile_options=options or None)
        compiled.append(result)
        return result

    got = _seen(case, jit)
    problem = difference(got, expected, case.rtol)
    if problem:
        xla = _seen(case, lambda function, **options: jax.jit(function))
        if isinstance(got, Exception) and isinstance(xla, Exception):
            return Outcome("skipped", f"jax.jit: {said(xla)}")
        alike = "" if difference(got, xla, case.rtol) else "; so it is with jax.jit"
        return Outcome("wrong", problem + alike)
    reports = [function.polyblocks_report() for function in compiled]
    if all(report.whole for report in reports):
        return Outcome("compiled")
    rows = [str(row) for r in reports for row in (*r.fallbacks, *r.failures)]
    return Outcome("fallback", "; ".join(rows)[:240])


def _seen(case: Case, jit: Any) -> Any:
    np.random.seed(3)
    try:
        return case.run(jit)
    except Exception as error:
        return error


def difference(got: Any, expected: Any, rtol: float) -> str:
    """Where what was seen differs; empty if nowhere."""
    problem = raised(got, expected)
    if problem is not None:
        return problem
    mine, my_tree = jax.tree.flatten(got)
    theirs, their_tree = jax.tree.flatten(expected)
    if my_tree != their_tree:
        return f"{my_tree} instead of {their_tree}"
    # What is compiled gives arrays, whatever the function gives.
    arrays = [isinstance(x, jax.Array) for x in theirs]
    theirs = [jnp.asarray(x) if isinstance(x, _NUMBERS) and isinstance(y, jax.Array) else x
              for x, y in zip(theirs, mine, strict=True)]  # fmt: skip
    problem = leaves_differ(mine, theirs, _array, rtol)
    for i, (a, b) in enumerate(zip(mine, theirs, strict=True)):
        if not problem and arrays[i] and a.weak_type != b.weak_type:
            problem = f"leaf {i}: weak_type is {a.weak_type}"
    return problem


_NUMBERS = (bool, int, float, complex, np.ndarray, np.generic)


def _array(leaf: Any) -> Any:
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    return np.asarray(leaf) if isinstance(leaf, (jax.Array, np.ndarray, np.generic)) else None
