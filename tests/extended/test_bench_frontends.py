"""The algorithms, and the comparison of the three frontends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from bench import engines, frontends
from bench.algorithms import in_torch, table
from bench.errors import max_error
from swept_algorithms import SWEPT_ALGORITHMS

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

pytestmark = pytest.mark.usefixtures("compiled_in_this_process")

FOLDER = Path(in_torch.__file__).parent


def test_every_framework_has_every_algorithm() -> None:
    names = [algorithm.name for algorithm in table.ALGORITHMS]
    assert len(names) == len(set(names)) == len(in_torch.__all__)
    for language in ("in_jax.py", "in_tensorflow.py"):
        text = (FOLDER / language).read_text()
        assert [name for name in names if f'    "{name}",\n' not in text] == []


def test_arguments_are_the_same_each_time() -> None:
    for algorithm in table.ALGORITHMS:
        for one, other in zip(algorithm.small(), algorithm.small(), strict=True):
            assert np.array_equal(one, other)
            assert one.dtype in (np.float32, np.int32)


@pytest.mark.parametrize("algorithm", SWEPT_ALGORITHMS, ids=lambda a: a.name)
def test_algorithms_in_pytorch_are_near_float64(algorithm: table.Algorithm) -> None:
    function = engines.written_in("in_torch", f"algorithms.{algorithm.name}")
    compiled = polyblocks_jit_torch(function, compile_options={"strict_target": True})
    inputs = [torch.from_numpy(x) for x in algorithm.small()]
    exact = [x.double() if x.is_floating_point() else x for x in inputs]
    expected = engines.joined(function(*exact)).astype(np.float64)
    assert max_error(engines.joined(compiled(*inputs)), expected) < algorithm.tolerance
    assert max_error(engines.joined(function(*inputs)), expected) < algorithm.tolerance


def test_programs_are_found_by_package() -> None:
    assert engines.written_in("in_torch", "algorithms.n_body") is in_torch.n_body
    assert engines.written_in("in_torch", "softmax") is in_torch.softmax
    with pytest.raises(ValueError, match="no algorithm is called 'x'; they are blur_x_blur_y, "):
        frontends.named("life,x")


def test_several_results_are_joined() -> None:
    assert engines.joined((torch.ones(2, 1), torch.arange(2))).tolist() == [1, 1, 0, 1]
    assert engines.joined(torch.ones(2, 1)).shape == (2, 1)


def row(peer: str, seconds: float, **facts: Any) -> dict[str, Any]:
    return {
        "peer": peer, "minimum": seconds, "ratio": None, "max_error": 0.0, "correct": True, **facts,
    }  # fmt: skip


def entry(name: str, *rows: dict[str, Any], contraction: bool = False) -> dict[str, Any]:
    return {"name": name, "contraction": contraction, "peers": list(rows)}


def test_the_page_says_who_is_slower_and_who_did_not_run() -> None:
    entries = [
        entry("a", row("polyblocks-jax", 0.5), row("jax", 1.0, ratio=4.0)),
        entry("b", row("polyblocks-jax", 2.0), row("jax", 1.0)),
        entry("c", row("polyblocks-jax", 1.0), row("jax", 9.0), contraction=True),
        entry("d", {"peer": "polyblocks-jax", "problem": "no"}, row("jax", 9.0)),
        entry("e", row("polyblocks-jax", 1.0, correct=False), row("jax", 2.0)),
    ]
    found = frontends.summary(entries, "polyblocks-jax")
    assert found["geomean"] == pytest.approx((4.0 * 0.5 * 2.0) ** (1 / 3))
    assert found["slower"] == ["b", "d"]
    assert frontends.failures(entries) == [
        "d: polyblocks-jax: no",
        "e: polyblocks-jax is wrong by 0.0",
    ]
    results = {
        "date": "2000-01-01",
        "machine": {"cpu": "chip", "threads": 2},
        "rounds": 3,
        "busy": 0.5,
        "algorithms": entries,
        "summary": {ours: frontends.summary(entries, ours) for ours in frontends.PAIRS},
    }
    text = frontends.markdown(json.loads(json.dumps(results)))
    assert "do not trust these numbers" in text
    assert "polyblocks-jax against jax: geometric mean 1.59×; below 0.95×: b, d" in text
    assert "| c * | – | 1e+03 | 9e+03 | 9.00 | – | – | – |" in text
    assert "- d: polyblocks-jax: no" in text
