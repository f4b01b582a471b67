"""One sample: run it with TensorFlow, with its XLA and compiled, and compare."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
from forked_sweep import Outcome

from polyblocks_tf import polyblocks_jit_tf
from polyblocks_tf.tracing.graph import everything

#: A result may differ by this much (relative, absolute).
TOLERANCE = {
    "float64": (1e-9, 1e-10),
    "float32": (1e-4, 1e-5),
    "complex64": (1e-4, 1e-5),
    "complex128": (1e-9, 1e-10),
    "float16": (1e-2, 1e-2),
    "bfloat16": (5e-2, 5e-2),
}

#: Results count as equally exact when their error is at most this many times TensorFlow's.
SLACK = 4.0

#: Types of operations that are no subject: they only carry values.
_PLUMBING = frozenset(
    "Placeholder Const Identity IdentityN NoOp PartitionedCall StatefulPartitionedCall".split()
)


@dataclass(frozen=True)
class Sample:
    """A function and its arguments (tensors are made in the worker)."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


def check(sample: Sample) -> Outcome:
    """Run one sample the three ways."""
    arguments = [_tensor(a) for a in sample.arguments]
    try:
        traced = tf.function(sample.function, autograph=False)
        reference = traced(*arguments)
        graph = traced.get_concrete_function(*arguments).graph
        ops = tuple(sorted({op.type for op in everything(graph)} - _PLUMBING))
    except Exception as error:  # whatever it is, there is nothing to compare with
        return Outcome("skipped", f"TensorFlow: {_line(error)}")
    try:
        xla = tf.function(sample.function, jit_compile=True, autograph=False)(*arguments)
    except Exception as error:
        xla, why = None, _line(error)
    compiled = polyblocks_jit_tf(sample.function)
    try:
        got = compiled(*arguments)
    except Exception as error:
        return Outcome("wrong", f"raised {_line(error)}", ops)
    difference = _differ(got, reference)
    if difference and xla is not None and not _differ(got, xla):
        difference = ""
    if difference and not _nearer(sample, got, reference):
        return Outcome("wrong", difference, ops)
    report = compiled.polyblocks_report()
    left = {fallback.op: fallback.reason for fallback in report.fallbacks}
    if not left:
        return Outcome("compiled", "" if xla is not None else "XLA does not compile it", ops)
    if xla is None:
        return Outcome("skipped", f"XLA: {why}", ops)
    reason = "; ".join(f"{op}: {why}" for op, why in left.items())
    return Outcome("fallback", reason[:300], ops, tuple(left))


def _tensor(value: Any) -> Any:
    return tf.constant(value) if isinstance(value, (np.ndarray, np.generic)) else value


def _differ(mine: Any, theirs: Any) -> str:
    """Where and how results differ; empty if they agree."""
    mine, theirs = (tf.nest.flatten(r, expand_composites=True) for r in (mine, theirs))
    if len(mine) != len(theirs):
        return f"{len(mine)} results instead of {len(theirs)}"
    for index, (a, b) in enumerate(zip(mine, theirs, strict=True)):
        if b is None:
            continue
        if a.dtype != b.dtype or a.shape != b.shape:
            return f"result {index}: {a.dtype.name}{a.shape} instead of {b.dtype.name}{b.shape}"
        if b.dtype == tf.string:
            continue
        rtol, atol = TOLERANCE.get(b.dtype.name, (0.0, 0.0))
        try:
            np.testing.assert_allclose(_wide(a), _wide(b), rtol=rtol, atol=atol)
        except AssertionError as error:
            return f"result {index}: {' '.join(str(error).split())[:250]}"
    return ""


def _nearer(sample: Sample, mine: Any, theirs: Any) -> bool:
    """Whether results are about as near to those in double precision as TensorFlow's are."""
    try:
        exact = sample.function(*(_double(_tensor(a)) for a in sample.arguments))
    except Exception:  # not all functions take double precision
        return False
    rows = zip(
        *(tf.nest.flatten(r, expand_composites=True) for r in (mine, theirs, exact)), strict=False
    )
    for a, b, c in rows:
        if c is None:
            continue
        if not b.dtype.is_floating or a.dtype != b.dtype or a.shape != b.shape:
            return False
        ours, other = (float(np.abs(_wide(x) - _wide(c)).max(initial=0)) for x in (a, b))
        smallest = np.finfo(np.float32).eps * float(np.abs(_wide(c)).max(initial=0))
        if not ours <= SLACK * max(other, smallest):
            return False
    return True


def _double(value: Any) -> Any:
    narrow = isinstance(value, tf.Tensor) and value.dtype.is_floating
    return tf.cast(value, tf.float64) if narrow else value


def _wide(tensor: Any) -> Any:
    array = tensor.numpy()
    if tensor.dtype.is_floating:
        return np.asarray(array, np.float64)
    return np.asarray(array, np.complex128) if tensor.dtype.is_complex else array


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
