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
    # Steps begin again with the arguments. Tiles may overlap, and round in two ways what both have.
    again = prepared.call()
    assert again is not first
    assert max_error(again, expected) <= NEAR


def test_what_cannot_run_says_so() -> None:
    for name in WITHOUT:
        with pytest.raises(NotImplementedError, match="is not written in Halide"):
            halide_cpu.prepare("halide-adams", f"pipelines.{name}", SMALL[name]())
    median = SMALL["filters.median"]()
    with pytest.raises(NotImplementedError, match="median has no schedule by hand"):
        halide_cpu.prepare("halide-by-hand", "pipelines.filters.median", median)


def test_a_schedule_is_that_of_the_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, str]] = []
    apply = hl.Pipeline.apply_autoscheduler

    def spied(pipeline: Any, target: Any, parameters: Any) -> Any:
        asked.append({"": parameters.name, **parameters.extra})
        return apply(pipeline, target, parameters)

    monkeypatch.setattr(hl.Pipeline, "apply_autoscheduler", spied)
    for peer in engines.HALIDE:
        halide_cpu.warm_up(peer, 2)
        inputs = SMALL["filters.harris"]()
        halide_cpu.prepare(peer, "pipelines.filters.harris", inputs).call()
    mullapudi, *adams = asked
    assert mullapudi == {"": "Mullapudi2016", "parallelism": "2"}
    assert adams
    assert all(x == {"": "Adams2019", "parallelism": "2", "beam_size": "32"} for x in adams)


def test_arguments_go_on_beyond_their_borders_where_a_schedule_reads_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And only for autoschedulers: a schedule by hand that does so is wrong."""
    tried: list[bool] = []

    def compiled(*_: Any, beyond: bool) -> Any:
        tried.append(beyond)
        if not beyond:
            raise hl.HalideError("Input buffer input0 is accessed at -16")
        return lambda: np.ones(3)

    monkeypatch.setattr(halide_cpu, "_compiled", compiled)
    inputs = SMALL["filters.harris"]()
    prepared = halide_cpu.prepare("halide-adams", "pipelines.filters.harris", inputs)
    assert np.array_equal(prepared.call(), np.ones(3))
    prepared.call()
    assert tried == [False, True]
    prepared = halide_cpu.prepare("halide-by-hand", "pipelines.filters.harris", inputs)
    with pytest.raises(hl.HalideError, match="accessed at -16"):
        prepared.call()
    assert tried == [False, True, False]


def test_a_worker_describes_it() -> None:
    described = Worker("halide-mullapudi", 2).describe()
    assert described["versions"] == {"halide": "21.0.0"}
    assert "written at each call" in described["outputs"]
