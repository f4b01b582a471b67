"""What JAX's and TensorFlow's programs have in common: arguments, and arrays that are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import ml_dtypes
import numpy as np

DTYPES = {
    "f32": np.float32, "f64": np.float64, "f16": np.float16, "b16": ml_dtypes.bfloat16,
    "i64": np.int64, "i32": np.int32, "i16": np.int16, "i8": np.int8, "u8": np.uint8,
    "u32": np.uint32, "bool": np.bool_, "c64": np.complex64, "c128": np.complex128,
}  # fmt: skip

#: Relative to the largest number of a result.
TOLERANCE = {"float64": 1e-11, "complex128": 1e-11, "float16": 4e-3, "bfloat16": 3e-2}


def made(*texts: Any) -> list[Any]:
    """Arguments: ``"f32 3x4 special"`` and the like, what makes one, or a value."""
    return [_made(i, text) for i, text in enumerate(texts)]


def _made(seed: int, text: Any) -> Any:
    if not isinstance(text, str):
        return text() if callable(text) else text
    word, shape, *more = text.split()
    extents = () if shape == "-" else tuple(map(int, shape.split("x")))
    kind, rng = np.dtype(DTYPES[word]), np.random.default_rng(seed)
    if kind.kind == "b":
        return rng.random(extents) < 0.5
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        array = rng.integers(0 if limits.min == 0 else -9, 256 if word == "u8" else 10, extents)
        array = np.asarray(array).astype(kind)
        odd: Iterable[Any] = (limits.min, limits.max, limits.max - 1)
    else:
        array = np.asarray(rng.standard_normal(extents))
        array = (array + 1j * rng.standard_normal(extents) if kind.kind == "c" else array).astype(
            kind
        )
        odd = (np.nan, np.inf, -np.inf, -0.0)
    if "special" in more:
        for value in odd:
            array.flat[rng.integers(array.size)] = value
    return array


def arrays_differ(a: Any, b: Any, rtol: float = 0.0) -> str:
    """How an array is not as expected; empty if it is.

    Args:
        a: ours, a NumPy array.
        b: the framework's.
        rtol: relative tolerance; 0: that of the dtype.
    """
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return f"{a.dtype}{list(a.shape)} instead of {b.dtype}{list(b.shape)}"
    if b.dtype.kind == "c":
        real = b.real.dtype
        return arrays_differ(*(np.stack([x.real, x.imag], -1).astype(real) for x in (a, b)), rtol)
    if b.dtype.kind in "fV":
        tolerance = rtol or TOLERANCE.get(str(b.dtype), 2e-5)
        a, b = a.astype(np.float64), b.astype(np.float64)
        finite = np.isfinite(b)
        largest = np.abs(b[finite]).max(initial=0.0)
        with np.errstate(invalid="ignore"):
            near = np.abs(a - b) <= tolerance * largest
        wrong = ~np.where(finite, near, (a == b) | (np.isnan(a) & np.isnan(b)))
    else:
        wrong = np.asarray(a != b)
    if not wrong.any():
        return ""
    at = tuple(int(n) for n in np.argwhere(wrong)[0])
    return f"{wrong.sum()} of {wrong.size} differ, at {list(at)} {a[at]} instead of {b[at]}"


def leaves_differ(
    mine: list[Any], theirs: list[Any], array: Callable[[Any], Any], rtol: float
) -> str:
    """How results differ; empty if they do not.

    Args:
        mine: ours.
        theirs: the framework's.
        array: gives the NumPy array of a leaf, or None.
        rtol: relative tolerance; 0: that of the dtype.
    """
    if len(mine) != len(theirs):
        return f"{len(mine)} results instead of {len(theirs)}"
    for i, (a, b) in enumerate(zip(mine, theirs, strict=True)):
        if type(a) is not type(b):
            return f"leaf {i}: {type(a).__name__} instead of {type(b).__name__}"
        if array(b) is not None:
            problem = arrays_differ(array(a), array(b), rtol)
        else:
            problem = "" if a == b or (a != a and b != b) else f"{a} instead of {b}"
        if problem:
            return f"leaf {i}: {problem}"
    return ""


def said(error: BaseException) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def raised(got: Any, expected: Any) -> str | None:
    """What is to say if one of both is an exception; None if neither is."""
    if isinstance(expected, Exception) and isinstance(got, Exception):
        return ""
    if isinstance(got, Exception):
        return f"raised {said(got)}"
    return f"did not raise {said(expected)}" if isinstance(expected, Exception) else None
