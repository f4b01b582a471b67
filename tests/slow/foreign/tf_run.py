"""TensorFlow programs, compiled and eager: how rows are called, what is compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from arrays_run import leaves_differ, made, raised
from cases import Case, Group
from forked_sweep import Outcome

from polyblocks_tf import polyblocks_jit_tf


def _given(values: list[Any]) -> list[Any]:
    return [tf.constant(v) if isinstance(v, np.ndarray) and v.dtype.isnative else v for v in values]


def called(function: Callable[..., Any], make: Callable[[], list[Any]]) -> Any:
    """Two calls."""
    return [function(*_given(make())) for _ in range(2)]


def _loss(results: Any) -> Any:
    total = tf.constant(0.0, tf.float64)
    for y in tf.nest.flatten(results):
        if y.dtype.is_floating:
            weights = tf.reshape(
                tf.linspace(tf.constant(0.5, tf.float64), 2.5, tf.size(y)), y.shape
            )
            total += tf.reduce_sum(tf.cast(y, tf.float64) * weights)
    return total


def gradients(function: Callable[..., Any], make: Callable[[], list[Any]]) -> Any:
    """Results and the gradients of all real arguments, by a tape around the call."""
    arguments = _given(make())
    real = [x for x in arguments if isinstance(x, tf.Tensor) and x.dtype.is_floating]
    with tf.GradientTape() as tape:
        tape.watch(real)
        results = function(*arguments)
        loss = _loss(results)
    found = tape.gradient(loss, real, unconnected_gradients="zero")
    return results, [tf.convert_to_tensor(g) for g in found]


def group(name: str, call: Callable[..., Any] = called) -> Group:
    """A group of cases for TensorFlow."""
    return Group(name, made, call)


def check(case: Case) -> Outcome:
    """Run one case both ways."""
    expected = _seen(case, lambda function, **options: function)
    compiled: list[Any] = []

    def jit(function: Any, **options: Any) -> Any:
        result = polyblocks_jit_tf(function, compile_options=options or None)
        compiled.append(result)
        return result

    got = _seen(case, jit)
    problem = difference(got, expected, case.rtol)
    if problem:
        graph = _seen(case, lambda function, **options: tf.function(function))
        alike = "" if difference(got, graph, case.rtol) else "; so it is with tf.function"
        return Outcome("wrong", problem + alike)
    reports = [function.polyblocks_report() for function in compiled]
    if all(report.whole for report in reports):
        return Outcome("compiled")
    rows = [f"{row.op}: {row.reason}" for report in reports for row in report.fallbacks]
    return Outcome("fallback", "; ".join(rows)[:240])


def _seen(case: Case, jit: Any) -> Any:
    tf.random.set_seed(3)
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
    mine, theirs = (tf.nest.flatten(x, expand_composites=True) for x in (got, expected))
    return leaves_differ(mine, theirs, _array, rtol)


def _array(leaf: Any) -> Any:
    if isinstance(leaf, (tf.Tensor, tf.Variable)):
        return None if leaf.dtype == tf.string else leaf.numpy()
    return np.asarray(leaf) if isinstance(leaf, (np.ndarray, np.generic)) else None
