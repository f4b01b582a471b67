"""Halide among the peers of the benchmark, where it is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bench import contest, engines, table
from bench.errors import max_error
from bench.worker import Worker
from pipeline_arguments import SMALL

hl = pytest.importorskip("halide")

from bench.engines import halide_cpu  # noqa: E402

#: Largest error at these sizes.
NEAR = 3e-6

BY_HAND = {"filters.blur_x_blur_y", "filters.harris", "images.local_laplacian"}
WITHOUT = {
    name
    for name in SMALL
    if name.startswith("simulation.") and not name.endswith((".wave", ".heat"))
}

#: What takes an autoscheduler long; the others have the same subjects.
SLOW = {"images.interpolation", "images.local_laplacian", "images.blending"}
LONG = {*SLOW, "images.camera", "images.bilateral_grid"}


def _of(peer: str, slow: set[str]) -> list[Any]:
    names = sorted(BY_HAND if peer == "halide-by-hand" else SMALL.keys() - WITHOUT)
    return [
        pytest.param(peer, name, marks=[pytest.mark.slow] if name in slow else []) for name in names
    ]


RUNS = [*_of("halide-mullapudi", SLOW), *_of("halide-adams", LONG), *_of("halide-by-hand", set())]


@pytest.mark.parametrize("peer, name", RUNS)
def test_results_are_near_float64(peer: str, name: str) -> None:
    inputs, program = SMALL[name](), f"pipelines.{name}"
    expected = contest.reference(table.Case(name, program, tuple, 0), inputs)
    halide_cpu.warm_up(peer, 2)
    prepared = halide_cpu.prepare(peer, program, inputs)
    first = prepared.to_numpy(prepared.call())
    assert max_error(first, expected) <= NEAR
    # Steps begin again with the arguments.
    again = prepared.call()
    assert again is not first
    assert np.array_equal(prepared.to_numpy(again), first)


def test_what_cannot_run_says_so() -> None:
    for name in WITHOUT:
        with pytest.raises(NotImplementedError, match="is not written in Halide"):
            halide_cpu.prepare("halide-adams", f"pipelines.{name}", SMALL[name]())
    median = SMALL["filters.median"]()
    with pytest.raises(NotImplementedError, match="median has no schedule by hand"):
        halide_cpu.prepare("halide-by-hand", "pipelines.filters.median", median)


def test_a_schedule_is_that_of_the_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []
    apply = hl.Pipeline.apply_autoscheduler

    def spied(pipeline: Any, target: Any, parameters: Any) -> Any:
        asked.append((parameters.name, parameters.extra["parallelism"]))
        return apply(pipeline, target, parameters)

    monkeypatch.setattr(hl.Pipeline, "apply_autoscheduler", spied)
    for peer in engines.HALIDE:
        halide_cpu.warm_up(peer, 2)
        inputs = SMALL["filters.harris"]()
        halide_cpu.prepare(peer, "pipelines.filters.harris", inputs).call()
    assert asked == [("Mullapudi2016", "2"), ("Adams2019", "2")]


def test_a_worker_describes_it() -> None:
    described = Worker("halide-mullapudi", 2).describe()
    assert described["versions"] == {"halide": "21.0.0"}
    assert "written at each call" in described["outputs"]
