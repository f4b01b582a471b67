"""The group of attention: its programs in three frameworks give the same results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
import tensorflow as tf
import torch
from bench import contest, engines, groups, table
from bench.attention.table import CASES, cached, points, vocabulary
from bench.contractions.table import MODEL_TOLERANCE, random
from bench.engines import pytorch
from bench.errors import max_error

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
    "cached_decode": cached(6, 3, 9, 5),
    "cross_entropy": vocabulary(7, 5, 33),
    "kernel_sum": points(21, 3, 5),
}

#: The models among the rows.
NETWORKS = {case.program: case for case in CASES if case.program.startswith("models.")}


def test_rows_and_bars() -> None:
    assert groups.GROUPS["attention"].cases == CASES
    assert len({case.name for case in CASES}) == len(CASES) == 20
    programs = {case.program for case in CASES} - set(NETWORKS)
    assert programs == {f"attention.{name}" for name in SMALL}
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


@pytest.mark.parametrize("program", sorted(NETWORKS))
def test_models_have_as_many_weights(program: str) -> None:
    """Of matrices; embeddings of words, normalizations and biases are not multiplied."""
    module = engines.written_in("in_torch", program)
    assert isinstance(module, torch.nn.Module)
    parts = [m for m in module.modules() if isinstance(m, (torch.nn.Linear, torch.nn.Conv2d))]
    weights = sum(m.weight.numel() for m in parts)
    # BERT's pooler is not asked, ViT's head is for one row, and GPT-2's is its embedding.
    beside = {"BERT-base states": -(768**2), "ViT-B/16": -768000, "GPT-2": 50257 * 768}
    # Its layers hold three matrices as one parameter, and all are written as well.
    beside["training step"] = 60 * 256**2
    assert NETWORKS[program].floor_bytes == 4 * (weights + beside.get(program[7:], 0))


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", [c for c in CASES if c.program in NETWORKS], ids=lambda case: case.name
)
def test_ours_runs_the_models(case: table.Case) -> None:
    inputs = case.inputs()
    prepared = pytorch.prepare(engines.OURS, case.program, inputs)
    with torch.no_grad():
        result = prepared.to_numpy(prepared.call())
    assert max_error(result, contest.reference(case, inputs)) <= MODEL_TOLERANCE
