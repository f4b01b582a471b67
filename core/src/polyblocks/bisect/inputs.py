"""Random inputs for a program, by its signature and a seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from polyblocks.bisect.execute import storage
from polyblocks.program import ArraySpec
from polyblocks.signature import spec_of

Array = np.ndarray[Any, Any]

#: Inputs of the rounds, in turn: plain numbers, many magnitudes, and NaN, Inf, -0.
KINDS = ("plain", "wide", "special")

#: Ranges [low, high) that integers are drawn from, by kind; None is all that the type holds. An
#: integer may be an index or a divisor, which only running the program tells: the first range with
#: which it runs is taken.
_RANGES: dict[str, tuple[tuple[int, int] | None, ...]] = {
    "plain": ((0, 8), (1, 8), (0, 2), (0, 1), (1, 2)),
    "wide": ((-100, 100), (0, 8), (1, 8), (0, 2), (0, 1), (1, 2)),
    "special": (None, (0, 8), (1, 8), (0, 2), (0, 1), (1, 2)),
}

#: Not among them: numbers near the largest. Sums of them overflow in one order and not in another.
_SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0)
_FINITE_SPECIAL = (0.0, -0.0, 1.0, -1.0)


def candidates(
    rows: Sequence[dict[str, Any]], kind: str, seed: int, finite: bool
) -> Iterator[list[Array]]:
    """Sets of inputs of one kind, to be tried in this order.

    Args:
        rows: of the inputs.
        kind: one of :data:`KINDS`.
        seed: of the random numbers.
        finite: leave NaN and infinities out.

    Yields:
        One array per row; bfloat16 as its bits (uint16), booleans as bytes.
    """
    integers = any("int" in row["dtype"] for row in rows)
    for number, limits in enumerate(_RANGES[kind]):
        if number and not integers:
            return
        random = np.random.default_rng([seed, KINDS.index(kind), number])
        yield [_draw(random, spec_of(row), kind, limits, finite) for row in rows]


def perturbed(arrays: Sequence[Array], rows: Sequence[dict[str, Any]], seed: int) -> list[Array]:
    """The same arrays, each finite floating number changed by a few units in the last place."""
    random = np.random.default_rng([seed, len(KINDS)])
    result = []
    for array, row in zip(arrays, rows, strict=True):
        dtype = row["dtype"]
        if "float" not in dtype and "complex" not in dtype:
            result.append(array)
            continue
        wide = widen(array, dtype)
        with np.errstate(invalid="ignore", over="ignore"):
            noise = random.choice([-1.0, 1.0], wide.shape) * 2 * _epsilon(dtype)
            changed = narrow(wide * (1.0 + noise), dtype)
        # A broadcast dimension holds one element, which must stay one.
        spec = spec_of(row)
        result.append(_through_memory(changed, spec))
    return result


def widen(array: Array, dtype: str) -> Array:
    """As float64 or complex128 for the floating types; other arrays as they are."""
    if dtype == "bfloat16":
        return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if "complex" in dtype:
        return array.astype(np.complex128)
    return array.astype(np.float64) if "float" in dtype else array


def narrow(array: Array, dtype: str) -> Array:
    """The inverse of :func:`widen`, rounded to nearest."""
    if dtype == "bfloat16":
        single = np.asarray(array, np.float32)
        bits = single.view(np.uint32)
        rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
        return np.where(np.isnan(single), 0x7FC0, rounded).astype(np.uint16)
    return np.asarray(array).astype(storage(dtype))


def _epsilon(dtype: str) -> float:
    if dtype == "bfloat16":
        return 2.0**-8
    return float(np.finfo(dtype).eps)


def _draw(
    random: np.random.Generator,
    spec: ArraySpec,
    kind: str,
    limits: tuple[int, int] | None,
    finite: bool,
) -> Array:
    n = spec.span if spec.numel else 0
    values: Array
    if spec.dtype == "bool":
        values = random.integers(0, 2, n, dtype=np.uint8)
    elif "int" in spec.dtype:
        values = _integers(random, n, np.dtype(spec.dtype), limits)
    else:
        values = _floats(random, n, kind, finite)
        if "complex" in spec.dtype:
            values = values + 1j * _floats(random, n, kind, finite)
        with np.errstate(over="ignore"):
            values = narrow(values, spec.dtype)
    return _strided(values, spec).copy()


def _floats(random: np.random.Generator, n: int, kind: str, finite: bool) -> Array:
    values = random.standard_normal(n)
    if kind == "wide":
        values = values * 10.0 ** random.integers(-3, 3, n)
    elif kind == "special":
        special = random.choice(_FINITE_SPECIAL if finite else _SPECIAL, n)
        # Rare enough that a sum over a row is often a number.
        values = np.where(random.random(n) < 0.05, special, values)
    return values


def _integers(
    random: np.random.Generator, n: int, dtype: np.dtype[Any], limits: tuple[int, int] | None
) -> Array:
    info = np.iinfo(dtype)
    if limits is None:
        return random.integers(info.min, info.max, n, dtype=dtype, endpoint=True)
    low, high = max(limits[0], int(info.min)), min(limits[1], int(info.max))
    return random.integers(low, high, n, dtype=dtype)


def _through_memory(array: Array, spec: ArraySpec) -> Array:
    """The array, stored with the strides of ``spec`` and read back."""
    flat = np.zeros(spec.span if spec.numel else 0, array.dtype)
    view = _strided(flat, spec)
    view[...] = array
    return view.copy()


def _strided(flat: Array, spec: ArraySpec) -> Array:
    steps = [s * flat.itemsize for s in spec.strides]
    return np.lib.stride_tricks.as_strided(flat, spec.shape, steps)
