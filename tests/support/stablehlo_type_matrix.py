"""Operations over all pairs of dtypes and sources of operands, many to a program, against eager.

The type matrices of JAX and TensorFlow. An operand is an argument, a constant that the function
makes, or a Python number: each takes another way through a framework and through the importer.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
DTYPES = ("bool", *INTEGERS, *FLOATS, "complex64")

#: What Python gives.
NUMBERS: tuple[Any, ...] = (True, -1, 0, 2.5, 300, 2**40)

NAN, INF = float("nan"), float("inf")
_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, -0.75, 2.0, 3.0, -2.5, 1.5, 7.0, INF, -INF, NAN, 100.0, 1e-3)

#: Relative error that a result may have: some units in the last place.
RTOL = {"float16": 2**-9, "bfloat16": 2**-6, "float32": 2e-6, "float64": 1e-13, "complex64": 4e-6,
        "complex128": 1e-12}  # fmt: skip


def numpy_dtype(name: str) -> np.dtype[Any]:
    """NumPy's dtype of a name, bfloat16 among them."""
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def numbers(dtype: str, seed: int = 0) -> np.ndarray[Any, Any]:
    """Sixteen numbers: the ends of the type and what is special in it, in an order of the seed."""
    if dtype == "bool":
        found: Any = [False, True] * 8
    elif dtype in INTEGERS:
        info = np.iinfo(dtype)
        ends = [info.min, info.max, info.max // 2, info.max - 1, info.min + 1]
        found = [*ends, 0, 1, 2, 3, 5, 7, 31, 33, 100, *((-1, -7) if info.min else (64, 63))]
    elif dtype == "complex64":
        finite = [value for value in _FLOATS if np.isfinite(value)]
        found = [complex(a, b) for a, b in zip(finite, finite[::-1], strict=True)]
        found = [*found, 2 + 3j, -1j, 0j][:16]
    else:
        found = list(_FLOATS)
    array = np.array(found, dtype=object).astype(numpy_dtype(dtype))
    return array[np.random.default_rng(seed).permutation(16)]


@dataclass(frozen=True)
class Case:
    """One result of a program.

    Attributes:
        label: says what it is.
        function: of the program's arguments, by name.
        rtol: times the usual tolerance.
    """

    label: str
    function: Callable[[Mapping[str, Any]], Any]
    slack: float = 1.0


class Framework:
    """What a type matrix needs of a framework.

    Attributes:
        left: kinds of operations that the framework ran by itself.
    """

    left = 0

    def trace(self, function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
        """Trace a function of named arguments; raises what the framework does."""
        raise NotImplementedError

    def references(
        self, functions: Sequence[Callable[..., Any]], arguments: Mapping[str, Any]
    ) -> list[Any]:
        """The results of functions that can be traced, as the framework has them.

        An exception stands for one that raises for these values.
        """
        raise NotImplementedError

    def compiled(self, function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
        """The same compiled; adds to :attr:`left`."""
        raise NotImplementedError

    def numpy(self, result: Any) -> np.ndarray[Any, Any]:
        """A result as an array of NumPy."""
        return np.asarray(result)


def difference(got: np.ndarray[Any, Any], expected: np.ndarray[Any, Any], slack: float) -> str:
    """How a result differs; empty if it does not."""
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return f"{got.dtype}{list(got.shape)} instead of {expected.dtype}{list(expected.shape)}"
    name = expected.dtype.name
    if name not in RTOL:
        wrong = got != expected
    else:
        wide = np.complex128 if expected.dtype.kind == "c" else np.float64
        a, b = got.astype(wide), expected.astype(wide)
        with np.errstate(all="ignore"):
            near = np.isclose(a, b, rtol=RTOL[name] * slack, atol=_least(name), equal_nan=True)
            # Which part of a complex number is NaN where it is not finite is left open.
            wrong = ~near & (np.isfinite(b) if wide is np.complex128 else True)
    if not np.any(wrong):
        return ""
    got, expected = np.atleast_1d(got), np.atleast_1d(expected)
    places = map(tuple, np.argwhere(np.atleast_1d(wrong))[:3].tolist())
    rows = [f"{got[place]} instead of {expected[place]} at {place}" for place in places]
    return f"{int(np.sum(wrong))} wrong: {'; '.join(rows)}"


def _least(name: str) -> float:
    """Below this (denormal numbers) nothing is compared."""
    tiny = {"float16": 6e-5, "bfloat16": 1e-37, "float64": 1e-300}
    return tiny.get(name, 1e-37)


def check(
    framework: Framework, cases: Sequence[Case], arguments: Mapping[str, Any]
) -> tuple[int, list[str]]:
    """Compile the cases as one program.

    Returns:
        How many there were (what the framework refuses is none), and what differs.
    """
    traced = [case for case in cases if _is_traced(framework, case, arguments)]
    results = framework.references([case.function for case in traced], arguments)
    pairs = [
        (case, framework.numpy(result))
        for case, result in zip(traced, results, strict=True)
        if not isinstance(result, Exception)
    ]
    return len(pairs), _compare(framework, pairs, arguments)


def _is_traced(framework: Framework, case: Case, arguments: Mapping[str, Any]) -> bool:
    try:
        framework.trace(case.function, arguments)
    except Exception:  # whatever it is, there is nothing to compare with
        return False
    return True


def _compare(
    framework: Framework,
    pairs: Sequence[tuple[Case, np.ndarray[Any, Any]]],
    arguments: Mapping[str, Any],
) -> list[str]:
    if not pairs:
        return []
    kept = [case for case, _ in pairs]
    try:
        results = framework.compiled(lambda a: [c.function(a) for c in kept], arguments)
    except Exception as error:
        if len(kept) == 1:
            text = " ".join(str(error).split())[:300]
            return [f"{kept[0].label}: {type(error).__name__}: {text}"]
        halves = pairs[: len(pairs) // 2], pairs[len(pairs) // 2 :]
        return [line for half in halves for line in _compare(framework, half, arguments)]
    found = []
    for (case, expected), result in zip(pairs, results, strict=True):
        text = difference(framework.numpy(result), expected, case.slack)
        if text:
            found.append(f"{case.label}: {text}")
    return found


def main(
    description: str | None,
    framework: Framework,
    programs: Callable[[], Iterator[tuple[str, Sequence[Case], Mapping[str, Any]]]],
) -> int:
    """Compile the programs; print what differs. The exit status is 1 if anything does."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--only", help="programs whose names contain this")
    parser.add_argument("--begin", help="with the first program that has this name")
    arguments = parser.parse_args()
    waiting = arguments.begin is not None
    warnings.simplefilter("ignore")  # of both frameworks, on conversions that lose something
    begin, total, wrong = time.monotonic(), 0, 0
    for name, cases, given in programs():
        waiting = waiting and name != arguments.begin
        if waiting or (arguments.only and arguments.only not in name):
            continue
        start, left = time.monotonic(), framework.left
        count, lines = check(framework, cases, given)
        total += count
        wrong += len(lines)
        print(
            f"{name}: {count} results, {len(lines)} wrong, {framework.left - left} left to the "
            f"framework, {time.monotonic() - start:.1f} s",
            flush=True,
        )
        for line in lines:
            print(f"    {line}", flush=True)
    print(f"{total} results, {wrong} wrong, {time.monotonic() - begin:.0f} s")
    return int(wrong > 0)
