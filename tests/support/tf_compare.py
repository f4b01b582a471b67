"""Compiled functions against TensorFlow itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf


def assert_same(ours: Any, theirs: Any, rtol: float = 1e-4, atol: float = 1e-5) -> None:
    """Equal structure, dtypes, shapes, and values within tolerances (exact unless floating)."""
    if isinstance(theirs, tf.Tensor):
        assert isinstance(ours, tf.Tensor), type(ours)
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        a, b = ours.numpy(), theirs.numpy()
        if theirs.dtype.is_floating or theirs.dtype.is_complex:
            wide = np.complex128 if theirs.dtype.is_complex else np.float64
            np.testing.assert_allclose(a.astype(wide), b.astype(wide), rtol=rtol, atol=atol)
        else:
            np.testing.assert_array_equal(a, b)
    elif isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        for key in theirs:
            assert_same(ours[key], theirs[key], rtol, atol)
    elif isinstance(theirs, (list, tuple)):
        assert type(ours) is type(theirs)
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            assert_same(a, b, rtol, atol)
    else:
        assert ours == theirs


def check(
    function: Any,
    *arguments: Any,
    whole: bool = True,
    rtol: float = 1e-4,
    atol: float = 1e-5,
    **options: Any,
) -> Any:
    """Compiled and traced give the same. Returns the report; unless ``whole=False`` nothing may
    have fallen back.
    """
    from polyblocks_tf import polyblocks_jit_tf

    expected = tf.function(function)(*arguments)
    compiled = polyblocks_jit_tf(function, compile_options=options or None)
    assert_same(compiled(*arguments), expected, rtol, atol)
    report = compiled.polyblocks_report()
    if whole:
        assert report.whole, str(report)
    return report


def floats(*shape: int, seed: int = 0, low: float = -1.0, high: float = 1.0) -> tf.Tensor:
    """Uniform float32, the same for the same seed."""
    values = np.random.default_rng(seed).uniform(low, high, shape)
    return tf.constant(values.astype(np.float32))
