"""Arrays for samples: the same at each run, made without TensorFlow."""

from __future__ import annotations

import ml_dtypes
import numpy as np

FLOATS = ("float32", "float64", "float16", "bfloat16")
COMPLEX = ("complex64", "complex128")
INTEGERS = ("int32", "int64", "int8", "int16", "uint8", "uint16", "uint32", "uint64")


def dtype_of(name: str) -> np.dtype:
    """The NumPy dtype; bfloat16 is one of ml_dtypes."""
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def array(
    *shape: int, dtype: str = "float32", low: float = -2.0, high: float = 2.0, seed: int = 0
) -> np.ndarray:
    """Uniform numbers of any dtype."""
    generator = np.random.default_rng([seed, *shape])
    if dtype == "bool":
        return generator.random(shape) < 0.5
    if dtype in INTEGERS:
        bottom = max(int(low), 0) if dtype.startswith("u") else int(low)
        return generator.integers(bottom, max(int(high), bottom + 1), shape).astype(dtype)
    values = generator.uniform(low, high, shape)
    if dtype in COMPLEX:
        values = values + 1j * generator.uniform(low, high, shape)
    return values.astype(dtype_of(dtype))
