"""The cases: a function by name, its inputs, and what is asked of it. NumPy only.

Workers of every framework read this table; the functions are in :mod:`bench.programs`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Arrays = tuple[np.ndarray[Any, Any], ...]

#: Largest error of a right result; see :func:`bench.errors.max_error`.
TOLERANCE = 1e-5


@dataclass(frozen=True)
class Case:
    """One row of the results.

    Attributes:
        name: operation and size.
        program: the function's name in each module of :mod:`bench.programs`.
        inputs: makes the arguments, the same ones at each call.
        floor_bytes: bytes that nobody can avoid moving: what is needed of every argument, and the
            result, once.
        bar: how many times as fast as the best peer it is to be.
        bar_floor: the least of it that is acceptable; 0 if nothing is asked.
        copy_share: part of the copy bandwidth it is to reach; 0 if nothing is asked.
        tolerance: largest error that is not a mistake, as :func:`bench.errors.max_error` has it.
        branches: part of the result's elements that do not count in an error, since a comparison
            decides about them that rounding may turn over.
        flops: operations of its contractions, a multiply-add is two; 0 if there are none.
        operands: of the multiply-adds, one of :data:`bench.ceiling_code.PEAKS`.
    """

    name: str
    program: str
    inputs: Callable[[], Arrays]
    floor_bytes: int
    bar: float = 1.0
    bar_floor: float = 0.0
    copy_share: float = 0.0
    tolerance: float = TOLERANCE
    flops: int = 0
    operands: str = "float32"
    branches: float = 0.0


def normal(*shapes: tuple[int, ...]) -> Callable[[], Arrays]:
    """Inputs of normally distributed numbers."""
    return lambda: tuple(_random().standard_normal(shape, dtype=np.float32) for shape in shapes)


def halves(*shapes: tuple[int, ...]) -> Callable[[], Arrays]:
    """Inputs of normally distributed numbers in float16."""
    return lambda: tuple(x.astype(np.float16) for x in normal(*shapes)())


def uniform(*shapes: tuple[int, ...]) -> Callable[[], Arrays]:
    """Inputs of numbers from 0 to 1."""
    return lambda: tuple(_random().random(shape, dtype=np.float32) for shape in shapes)


def picture(height: int, width: int) -> Callable[[], Arrays]:
    """An image with flat parts, edges, corners and noise; values from 0 to 1."""

    def make() -> Arrays:
        y, x = np.mgrid[:height, :width].astype(np.float32)
        waves = np.sin(x / 37) * np.cos(y / 53)
        squares = np.where((x // 64 + y // 96) % 2 == 0, 0.25, -0.25)
        noise = 0.05 * _random().standard_normal((height, width), dtype=np.float32)
        return (np.clip(0.5 + 0.2 * waves + squares + noise, 0, 1).astype(np.float32),)

    return make


def rows_of_table(count: int, table: int, width: int) -> Callable[[], Arrays]:
    """A table and random row numbers."""

    def make() -> Arrays:
        values = _random().standard_normal((table, width), dtype=np.float32)
        return values, _random().integers(0, table, count, dtype=np.int64)

    return make


def elements(*shapes: tuple[int, ...]) -> int:
    """Bytes of float32 arrays of these shapes."""
    return 4 * sum(math.prod(shape) for shape in shapes)


def _random() -> np.random.Generator:
    return np.random.default_rng(0)


_MIB16 = 1 << 24
_IMAGE = (2048, 2048)
_ROWS = (4096, 1024)
_SQUARE = (4096, 4096)
_FEATURES = (8, 64, 56, 56)
_TABLE = (1 << 20, 64)

CASES: tuple[Case, ...] = (
    Case(
        "blur_x_blur_y 3x2048x2048",
        "blur_x_blur_y",
        uniform((3, *_IMAGE)),
        elements((3, *_IMAGE), (3, 2044, 2044)),
        bar=5.0,
        copy_share=0.5,
    ),
    Case(
        "elementwise chain 16M",
        "elementwise_chain",
        normal((_MIB16,), (_MIB16,)),
        3 * elements((_MIB16,)),
        copy_share=0.7,
    ),
    Case("softmax 4096x1024", "softmax", normal(_ROWS), 2 * elements(_ROWS)),
    Case("log_softmax 4096x1024", "log_softmax", normal(_ROWS), 2 * elements(_ROWS)),
    Case(
        "layer_norm 4096x1024",
        "layer_norm",
        normal(_ROWS, (1024,), (1024,)),
        2 * elements(_ROWS, (1024,)),
    ),
    Case("rms_norm 4096x1024", "rms_norm", normal(_ROWS, (1024,)), elements(_ROWS, _ROWS, (1024,))),
    Case(
        "group_norm 8x64x56x56",
        "group_norm",
        normal(_FEATURES, (64,), (64,)),
        2 * elements(_FEATURES, (64,)),
    ),
    # Summing in another order moves the last bits of a float32.
    Case("sum 4096x4096", "total", uniform(_SQUARE), elements(_SQUARE), tolerance=1e-4),
    Case("mean over rows 4096x4096", "row_means", normal(_SQUARE), elements(_SQUARE, (4096,))),
    Case(
        "mean over columns 4096x4096",
        "column_means",
        normal(_SQUARE),
        elements(_SQUARE, (4096,)),
    ),
    Case(
        "argmax over rows 4096x4096",
        "row_argmax",
        normal(_SQUARE),
        elements(_SQUARE) + 8 * 4096,
        tolerance=0.0,
    ),
    Case(
        "cumsum over rows 4096x4096",
        "row_cumsum",
        normal(_SQUARE),
        2 * elements(_SQUARE),
        tolerance=1e-4,
    ),
    Case(
        "image pipeline 2048x2048",
        "adaptive_sharpen",
        picture(*_IMAGE),
        2 * elements(_IMAGE),
        bar=5.0,
    ),
    Case("heat equation, 10 steps 2048x2048", "heat", uniform(_IMAGE), 2 * elements(_IMAGE), bar=3),
    Case("transpose 4096x4096", "transpose", normal(_SQUARE), 2 * elements(_SQUARE), tolerance=0.0),
    Case(
        "pad, slice, concat of three 16 MB",
        "pad_slice_concat",
        normal(_IMAGE, _IMAGE, _IMAGE),
        # The result, and what it takes from each: all rows, all but 128, every other one.
        elements((2048 + 1920 + 1024, 2064)) + elements(_IMAGE, (1920, 2048), (1024, 2048)),
        tolerance=0.0,
    ),
    Case(
        "gather 1M rows of 64",
        "gather_rows",
        rows_of_table(1 << 20, *_TABLE),
        8 * (1 << 20) + 2 * elements(_TABLE),
        tolerance=0.0,
    ),
)


def named(text: str, cases: tuple[Case, ...] = CASES) -> tuple[Case, ...]:
    """The cases with one of the comma-separated parts of ``text`` in the name, or as function.

    Raises:
        ValueError: a part fits no case; lists them all.
    """
    chosen: dict[str, Case] = {}
    for part in (p.strip() for p in text.split(",")):
        found = [
            case for case in cases if part in case.name or part == case.program.rpartition(".")[2]
        ]
        if not found:
            names = ", ".join(case.name for case in cases)
            raise ValueError(f"no case contains '{part}'; the cases are {names}")
        chosen |= {case.name: case for case in found}
    return tuple(case for case in cases if case.name in chosen)
