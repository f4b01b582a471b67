"""The group of attention: its programs in three frameworks give the same results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
import tensorflow as tf
from bench import contest, engines, groups, table
from bench.attention.table import CASES, points, vocabulary
from bench.contractions.table import random

#: Arguments of odd sizes for every program.
SMALL: dict[str, Callable[[], table.Arrays]] = {
    "library": random((1, 3, 7, 5), (1, 3, 9, 5), (1, 3, 9, 5)),
    "written": random((3, 7, 5), (3, 9, 5), (3, 9, 5)),
    "causal": random((1, 3, 9, 5), (1, 3, 9, 5), (1, 3, 9, 5)),
    "grouped": random((1, 6, 9, 5), (1, 3, 9, 5), (1, 3, 9, 5)),
    "grouped_decode": random((1, 6, 1, 5), (1, 3, 9, 5), (1, 3, 9, 5)),
    "capped": random((3, 9, 5), (3, 9, 5), (3, 9, 5)),
    "window": random((1, 520, 5), (1, 520, 5), (1, 520, 5)),
    "documents": random((1, 2, 520, 5), (1, 2, 520, 5), (1, 2, 520, 5)),
    "alibi": random((1, 3, 9, 5), (1, 3, 9, 5), (1, 3, 9, 5)),
    "biased": random((2, 3, 9, 5), (2, 3, 9, 5), (2, 3, 9, 5), (1, 3, 9, 9)),
    "cross_entropy": vocabulary(7, 5, 33),
    "kernel_sum": points(21, 3, 5),
}


def test_rows_and_bars() -> None:
    assert groups.GROUPS["attention"].cases == CASES
    assert len({case.name for case in CASES}) == len(CASES) == 13
    assert {case.program for case in CASES} == {f"attention.{name}" for name in SMALL}
    assert all(0 < case.bar_floor < case.bar and case.flops for case in CASES)


def test_bytes_are_those_of_arguments_and_result() -> None:
    case = CASES[8]
    inputs = case.inputs()
    assert case.floor_bytes == sum(x.nbytes for x in inputs) + inputs[0].nbytes
    assert case.flops == 2 * 2 * 16 * 512 * 512 * 64


@pytest.mark.parametrize("name", sorted(SMALL))
def test_all_frameworks_compute_the_same(name: str) -> None:
    inputs = SMALL[name]()
    expected = contest.reference(table.Case(name, f"attention.{name}", tuple, 0), inputs)

    def differs(result: Any) -> float:
        return float(np.abs(np.asarray(result, np.float64) - expected).max())

    of_jax = engines.written_in("in_jax", f"attention.{name}")
    assert differs(jax.jit(of_jax)(*inputs)) < 1e-5 * max(1.0, np.abs(expected).max())
    of_tensorflow = engines.written_in("in_tensorflow", f"attention.{name}")
    found = of_tensorflow(*(tf.constant(x) for x in inputs))
    assert differs(found) < 1e-5 * max(1.0, np.abs(expected).max())
