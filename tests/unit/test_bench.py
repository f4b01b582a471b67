"""The harness: what is measured, what counts as wrong, and what is written."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from bench import measure, peers, report
from bench.__main__ import run
from bench.cases import CASES, Case, floor_bytes

DOUBLE = Case("double 8", lambda x: 2 * x, lambda: (torch.arange(8.0),))


def compare(*contestants: peers.Contestant) -> list[measure.Timing]:
    inputs = DOUBLE.inputs()
    expected = DOUBLE.expected(inputs)
    return measure.compare(contestants, inputs, expected, rounds=2, idle_s=0, turn_s=0)


def results(*contestants: peers.Contestant) -> dict[str, Any]:
    found = report.header(2)
    report.add_case(found, DOUBLE, 64, compare(*contestants))
    return found


def fails() -> Any:
    def call(*inputs: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("no such\nthing")

    return call


def test_every_peer_has_one_sample_per_round_at_least() -> None:
    (timing,) = compare(peers.eager(DOUBLE.function))
    assert len(timing.samples) == 2
    assert timing.minimum <= timing.median
    assert timing.max_error == 0
    assert timing.first_call > 0


def test_a_peer_that_cannot_run_does_not_stop_the_others() -> None:
    broken, eager = compare(peers.Contestant("x", fails), peers.eager(DOUBLE.function))
    assert broken.problem == "RuntimeError: no such thing"
    assert math.isnan(broken.first_call)
    assert not eager.problem


def test_inductor_without_a_compiler_says_what_to_install() -> None:
    from torch._inductor.exc import InvalidCxxCompiler

    problem = RuntimeError("backend failed")
    problem.__cause__ = InvalidCxxCompiler()
    assert "install g++" in peers.inductor(DOUBLE.function).explain(problem)
    assert "g++" not in peers.inductor(DOUBLE.function).explain(RuntimeError("other"))


@pytest.mark.parametrize(
    "result, error",
    [
        ([1.0, 2.0], 0.0),
        ([1.5, 2.0], 0.25),
        ([math.nan, 2.0], math.inf),
        ([1.0], math.inf),
    ],
)
def test_errors_are_relative_to_the_largest_magnitude(result: list[float], error: float) -> None:
    expected = torch.tensor([1.0, 2.0], dtype=torch.float64)
    assert measure.max_error(torch.tensor(result), expected) == error


def test_small_results_have_absolute_errors() -> None:
    expected = torch.tensor([0.25], dtype=torch.float64)
    assert measure.max_error(torch.tensor([0.5]), expected) == 0.25


def test_the_reference_of_the_blur_is_the_two_convolutions() -> None:
    blur = next(case for case in CASES if case.name.startswith("blur"))
    assert blur.reference is measure.blur_reference
    image = torch.rand(3, 9, 12, dtype=torch.float64)
    kernel = torch.tensor([0.0625, 0.25, 0.375, 0.25, 0.0625], dtype=torch.float64)
    across = torch.nn.functional.conv2d(image.view(3, 1, 9, 12), kernel.view(1, 1, 1, 5))
    expected = torch.nn.functional.conv2d(across, kernel.view(1, 1, 5, 1)).view(3, 5, 8)
    torch.testing.assert_close(measure.blur_reference(image), expected)


def test_the_floor_is_inputs_and_output_in_their_own_type() -> None:
    inputs = (torch.zeros(10), torch.zeros(2))
    assert floor_bytes(inputs, torch.zeros(5, dtype=torch.float64)) == 4 * (10 + 2 + 5)


def test_the_copy_moves_the_bytes_that_it_is_asked_for() -> None:
    call = peers.copy(800).prepare()
    assert 2 * call().nbytes == 800


def test_json_holds_what_the_table_shows(tmp_path: Path) -> None:
    ours = peers.Contestant("polyblocks", lambda: DOUBLE.function)
    found = results(peers.eager(DOUBLE.function), ours, peers.copy(64))
    places = report.write(found, tmp_path)
    stored = json.loads(places[0].read_text())
    assert stored["schema"] == report.SCHEMA
    assert stored["versions"]["torch"] == torch.__version__
    (case,) = stored["cases"]
    assert [row["peer"] for row in case["peers"]] == ["eager", "polyblocks", "copy"]
    assert [row["correct"] for row in case["peers"]] == [True, True, None]
    heads, _, row = places[1].read_text().splitlines()[-3:]
    assert heads.startswith("| case | eager ms | polyblocks ms | copy ms | eager / ours |")
    assert row.startswith("| double 8 | ")
    assert heads.count("|") == row.count("|")
    assert report.failures(stored) == []


def test_wrong_results_and_cases_that_we_cannot_run_are_failures() -> None:
    wrong = peers.Contestant("eager", lambda: lambda x: 2 * x + 1)
    found = results(wrong, peers.Contestant("polyblocks", fails))
    assert report.failures(found) == [
        f"double 8: eager is wrong by {1 / 14}",
        "double 8: RuntimeError: no such thing",
    ]
    assert "- double 8: polyblocks did not run: RuntimeError: no such thing" in report.markdown(
        found
    )


def test_a_peer_of_ours_that_is_missing_is_no_failure() -> None:
    ours = peers.Contestant("polyblocks", lambda: DOUBLE.function)
    found = results(peers.Contestant("inductor", fails), ours)
    assert report.failures(found) == []
    assert "| – |" in report.markdown(found)


def test_unknown_cases_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("nonsense", 1, tmp_path) == 1
    assert "no case contains 'nonsense'; the cases are blur" in capsys.readouterr().err
