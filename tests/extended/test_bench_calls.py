"""The group ``calls`` of the benchmarks: what a call costs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench import __main__ as bench_main
from bench import suites
from bench.host_calls import bars, cases, files, in_c, in_numpy, measure, page, run, worker
from bench.host_calls.measure import Call, Peer

BY_NAME = {case.name: case for case in cases.CASES}
TWO, WEIGHTS = BY_NAME["2 arrays"], BY_NAME["20 weights"]


def compared(*peers: Peer, rounds: int = 3) -> list[dict[str, Any]]:
    return measure.compare(
        peers, TWO.expected, in_numpy.arrays_of, in_numpy.wait, rounds, turn_s=0.0
    )


def test_peers_take_turns_and_the_least_round_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    seconds = iter([9.0, 9.0, 9.0, 9.0, 3.0, 2.0, 8.0, 1.0, 5.0, 7.0])

    def timed(call: Call, number: int, wait: Any) -> float:
        order.append(call.positional[0])
        return next(seconds)

    def peer(name: str) -> Peer:
        return Peer(name, lambda: Call(lambda _: TWO.expected[0], (name,)))

    monkeypatch.setattr(measure, "seconds_per_call", timed)
    rows = compared(peer("a"), peer("b"))
    assert order == [*"aabb", *"ab", *"ba", *"ab"]
    assert rows == [{"peer": "a", "us": 1e6}, {"peer": "b", "us": 2e6}]


def test_wrong_results_and_failures_are_rows_and_stop_nobody() -> None:
    def fails() -> Call:
        raise RuntimeError("no\ncompiler")

    rows = compared(
        Peer("fails", fails),
        Peer("wrong", lambda: Call(lambda: TWO.expected[0] + 1)),
        Peer("two", lambda: Call(lambda: TWO.expected * 2)),
        Peer("right", lambda: Call(cases.total, tuple(TWO.inputs))),
    )
    assert rows[0]["problem"] == "RuntimeError: no compiler"
    assert rows[1]["problem"].startswith("ValueError: wrong result 0: expected [")
    assert "expected arrays of [(16,)], got [(16,), (16,)]" in rows[2]["problem"]
    assert rows[3]["us"] > 0


@pytest.mark.parametrize(
    "case",
    [case for case in cases.CASES if case.kind not in (cases.UPDATES, cases.LAUNCHES)],
    ids=lambda case: case.name,
)
def test_the_expected_results_are_those_of_numpy(case: cases.Case) -> None:
    keep = case.weights
    positional, keywords = cases.arguments_of(case.kind, case.inputs)
    found = cases.function_of(case.kind)(*positional, *keep, **keywords)
    measure.check(in_numpy.arrays_of(found), case.expected)


def test_files_are_loaded_and_called_from_c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_c, "CALLS", 2)
    tree = cases.Case("a tree of two", cases.TREE, 2)
    for case in (TWO, WEIGHTS, tree):
        assert worker.rows_of("files", case, tmp_path, 1) == []
        loaded, itself = worker.rows_of("numpy", case, tmp_path, 1)
        assert (loaded["peer"], itself["peer"]) == ("loaded", "NumPy")
        assert loaded["us"] > 0, loaded
        (row,) = worker.rows_of("c", case, tmp_path, 1)
        assert row["us"] > 0, row
    (row,) = worker.rows_of("c", BY_NAME["8 arrays"], tmp_path, 1)
    assert row["problem"].startswith("FileNotFoundError")


def test_weights_are_passed_in_the_order_of_the_library() -> None:
    case = cases.Case("w", cases.WEIGHTS, 2)
    assert files.weight_names(case) == ["held.0", "held.1"]
    text = in_c.program(case, [1, 0])
    assert "addresses[] = {weights[1], weights[0]}" in text
    assert "called_run(bound, inputs[0], COUNT, results[0], COUNT)" in text


def rows(*timed: tuple[str, str, str, float]) -> list[dict[str, Any]]:
    return [
        {"framework": framework, "case": case, "peer": peer, "us": us}
        for framework, case, peer, us in timed
    ]


ROWS = [
    *rows(
        ("PyTorch", "20 arrays", "decorated", 20.0),
        ("PyTorch", "20 arrays", "loaded", 6.0),
        ("PyTorch", "20 arrays", "Inductor", 10.0),
        ("JAX", "2 arrays", "decorated", 10.5),
        ("JAX", "2 arrays", "jax.jit", 10.0),
        ("TensorFlow", "200 variables assigned", "decorated", 351.0),
        ("NumPy", "200 weights", "loaded", 4.0),
    ),
    {"framework": "GPU", "case": "launch", "peer": "launches", "us": 2.0, "bar": 1.0},
]


def test_bars() -> None:
    earlier = rows(("JAX", "2 arrays", "decorated", 10.0))
    found = {(b.framework, b.peer, b.why): b for b in bars.bars(ROWS, earlier)}
    verdicts = {key: bar.verdict for key, bar in found.items()}
    assert verdicts == {
        ("PyTorch", "decorated", "1 × Inductor"): "missed",
        ("PyTorch", "loaded", ""): "floor",
        ("JAX", "decorated", "1.1 × jax.jit"): "met",
        ("JAX", "decorated", "as before"): "floor",
        ("TensorFlow", "decorated", ""): "missed",
        ("NumPy", "loaded", ""): "met",
        ("GPU", "launches", ""): "missed",
    }
    loaded = found["PyTorch", "loaded", ""]
    assert (loaded.most, loaded.floor) == (pytest.approx(5.4), pytest.approx(12.0))


def test_what_is_slower_than_a_peer() -> None:
    assert bars.slower(ROWS) == [
        "PyTorch, 20 arrays: decorated 2.00 × Inductor",
        "JAX, 2 arrays: decorated 1.05 × jax.jit",
    ]


@pytest.mark.parametrize("chip", ["zen znver5", "other"])
def test_bars_in_microseconds_fail_on_their_chip_alone(chip: str) -> None:
    problem = {"framework": "JAX", "case": "2 arrays", "peer": "loaded", "problem": "no"}
    absent = {"framework": "PyTorch", "case": "", "peer": "ONNX Runtime", "problem": "absent"}
    results = {"machine": {"cpu": chip}, "rows": [*ROWS, problem, absent]}
    found = run.failures(results, [])
    assert "JAX, 2 arrays: loaded: no" in found
    assert "PyTorch, 20 arrays: decorated took 20.00 µs, at most 10.00 are asked" in found
    said = [line for line in found if line.startswith("TensorFlow")]
    assert len(said) == (chip != "other")
    assert not any("ONNX" in line for line in found)


def test_the_page() -> None:
    absent = {"framework": "PyTorch", "case": "", "peer": "ONNX Runtime", "problem": "absent"}
    results = {
        "date": "2000-01-01", "machine": {"cpu": "chip"}, "rounds": 3, "rows": [*ROWS, absent],
    }  # fmt: skip
    text = page.markdown(json.loads(json.dumps(results)))
    assert "| case | decorated | loaded | Inductor |" in text
    assert "| 20 arrays | 20 | **6** | 10 |" in text
    assert "| PyTorch, 20 arrays, decorated | 20 | 10 (1 × Inductor) | 10 | missed |" in text
    assert "- PyTorch, ONNX Runtime: absent" in text
    assert "- JAX, 2 arrays: decorated 1.05 × jax.jit" in text


def test_every_framework_has_its_cases() -> None:
    names = run.names()
    assert "TensorFlow: 200 variables assigned" in names
    assert "JAX: 200 variables assigned" not in names
    assert [name for name in names if name.startswith("GPU")] == ["GPU: a program like BERT-base"]
    assert suites.chosen("C: 2 a", names) == ("C: 2 arrays",)


def test_a_process_leaves_what_it_has_and_says_how_it_failed(tmp_path: Path) -> None:
    answer = tmp_path / "answer.json"
    found, problem = suites.work("bench.host_calls.worker", ["numpy"], 1, {}, answer, 60.0)
    assert found is None
    assert problem.startswith("the process ended with status 1; its last words: ValueError")
    arguments = ["numpy", str(tmp_path), "1", str(answer), "2 arrays"]
    found, problem = suites.work("bench.host_calls.worker", arguments, 1, {}, answer, 60.0)
    assert problem == ""
    assert [row["peer"] for row in found] == ["loaded", "NumPy"]
    assert np.isfinite(found[1]["us"])
    answer.unlink()
    found, problem = suites.work("bench.host_calls.worker", arguments, 1, {}, answer, 0.01)
    assert (found, problem) == (None, "it took more than 0.01 s")


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--group", "calls", "--peers", "jax"], "--peers is not for the group calls; leave it"),
        (["--group", "calls", "--only", "none such"], "no case contains 'none such'; the cases"),
        (["--group", "calls", "--before", "none.json"], "No such file"),
        (["--before", "none.json"], "--before is for the group calls only"),
    ],
)
def test_what_the_command_line_refuses(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench_main.main(arguments) == 1
    assert said in capsys.readouterr().err


def test_results_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "measured", lambda *_: ROWS)
    assert bench_main.main(["--group", "calls", "--results", str(tmp_path)]) == 1
    (written,) = tmp_path.glob("*-calls.json")
    assert json.loads(written.read_text())["rows"] == ROWS
    assert "## Bars" in written.with_suffix(".md").read_text()
    assert "error: PyTorch, 20 arrays: decorated took" in capsys.readouterr().err
