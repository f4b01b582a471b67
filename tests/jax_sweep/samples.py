"""What a sample is, and the arrays that samples are made of."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

FLOATS = ("float32", "float64", "float16", "bfloat16")
SIGNED = ("int32", "int64", "int8", "int16")
UNSIGNED = ("uint32", "uint64", "uint8", "uint16")
INTEGERS = SIGNED + UNSIGNED
COMPLEX = ("complex64", "complex128")
BOOL = ("bool",)
EVERY = FLOATS + INTEGERS + COMPLEX + BOOL
NUMBERS = FLOATS + INTEGERS + COMPLEX

#: Scalars, odd sizes, none at all.
SHAPES: tuple[tuple[int, ...], ...] = ((7,), (), (3, 17), (0, 4))


@dataclass(frozen=True)
class Sample:
    """A call of a function on arrays.

    Attributes:
        label: what is special about it.
        function: of JAX.
        arguments: NumPy arrays.
        same: results are the same bits, not only near.
    """

    label: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    same: bool = False


@dataclass
class Entry:
    """One primitive.

    Attributes:
        name: as JAX writes it.
        samples: makes the samples; none for a primitive that no sample is possible of.
        reason: why there are none.
    """

    name: str
    samples: Callable[[], Iterator[Sample]] = field(default=lambda: iter(()))
    reason: str = ""


def dtype_of(name: str) -> Any:
    """The NumPy dtype, also of bfloat16."""
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def array(
    shape: tuple[int, ...],
    dtype: str,
    *,
    low: float = -3.0,
    high: float = 3.0,
    special: bool = False,
    seed: int = 0,
) -> Any:
    """Random numbers, the same in every run; ``special`` puts NaN, infinities and limits in front.

    Integers are from everywhere in their range if ``special``, else from -9 (or 0) to 9.
    """
    key = zlib.crc32(repr((shape, dtype, seed)).encode())
    random = np.random.default_rng(key)
    kind = dtype_of(dtype)
    if dtype == "bool":
        return np.asarray(random.random(shape) < 0.5)
    if kind.kind in "iu":
        return np.asarray(_integers(random, shape, kind, special))
    if kind.kind == "c":
        x = random.uniform(low, high, (*shape, 2)) @ np.array([1, 1j])
        return np.asarray(x).astype(kind)
    x = np.asarray(random.uniform(low, high, shape))
    flat = x.reshape(-1)
    if special and flat.size:
        values = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0]
        count = min(len(values), flat.size)
        flat[:count] = values[:count]
    return np.asarray(flat.reshape(shape)).astype(kind)


def _integers(random: Any, shape: tuple[int, ...], kind: Any, special: bool) -> Any:
    limits = np.iinfo(kind)
    if not special:
        least = max(-9, limits.min)
        return random.integers(least, 10, shape).astype(kind)
    x = np.asarray(random.integers(limits.min, limits.max, shape, kind, endpoint=True))
    flat = x.reshape(-1)
    values = np.array([limits.min, limits.max, 0, 1, limits.max // 2 + 1], kind)
    values = np.append(values, np.array(-1).astype(kind))
    count = min(len(values), flat.size)
    flat[:count] = values[:count]
    return flat.reshape(shape)
