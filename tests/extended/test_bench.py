"""The harness: what is measured, what counts as wrong, what is asked, and what is written."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import os
import signal
import sys
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from bench import (
    contest,
    crew,
    duels,
    engines,
    measure,
    page,
    peers,
    plot,
    predictions,
    report,
    silence,
    table,
    verdict,
    worker,
)
from bench.__main__ import OTHERS, RESULTS, better, chosen_peers, main, publish, run
from bench.engines import pytorch
from bench.errors import ROUNDING, as_good_as, max_error
from bench.programs import in_torch

DOUBLE = table.Case("softmax 2x4", "softmax", table.normal((2, 4)), 64)
QUICKLY = contest.Pace(rounds=2, turn_s=0, idle_s=0, duels=2)


class Fake:
    """A peer of this process: computes softmax, or what it is told."""

    def __init__(self, name: str, function: Any = None, problem: str = "", dies: bool = False):
        self.name = name
        self.function = function or (lambda x: torch.softmax(x, -1))
        self.problem, self.dies = problem, dies
        self.samples = [0.25, 0.125]
        self.orders: list[str] = []

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        self.orders.append(do)
        if self.problem or (self.dies and do == "turn"):
            return {"problem": self.problem or "it died"}
        if do == "prepare":
            folder = Path(arguments["folder"])
            (value,) = (np.load(file) for file in folder.glob("input*.npy"))
            np.save(folder / f"{self.name}.npy", self.function(torch.from_numpy(value)).numpy())
            return {"first_call": 0.5, "overhead": 0.1}
        return {"samples": self.samples} if do == "turn" else {}


def compare(tmp_path: Path, *fakes: Fake, case: table.Case = DOUBLE) -> list[contest.Score]:
    return contest.compare(case, fakes, tmp_path / "case", QUICKLY)


def results(tmp_path: Path, *fakes: Fake, **facts: Any) -> dict[str, Any]:
    case = table.Case("softmax 2x4", "softmax", table.normal((2, 4)), 64, **facts)
    found = report.header(2, 2)
    scores = compare(tmp_path, *fakes, case=case)
    report.add_case(found, case, [report.row(score, case.tolerance) for score in scores])
    found["peers"] = {fake.name: {"outputs": "new", "versions": {"x": "1"}} for fake in fakes}
    report.finish(found, None)
    return found


CEILINGS = {
    "threads": 2,
    "peaks": {"float32": 1e11, "int8": None},
    "memory": {"main": {"read": 5e9, "copy": 4e9}},
    "levels": {"main": 1 << 20},
}


# --- one case -------------------------------------------------------------------------------


def test_peers_take_turns_and_drop_the_case(tmp_path: Path) -> None:
    one, two = Fake("one"), Fake("two")
    scores = compare(tmp_path, one, two)
    assert [score.peer for score in scores] == ["one", "two"]
    assert one.orders == two.orders == ["prepare", "turn", "turn", "drop"]
    assert scores[0].samples == [0.25, 0.125] * 2
    assert 0 < scores[0].error < 1e-6
    assert not (tmp_path / "case").exists()


def test_ours_duels_with_the_fastest_rivals(tmp_path: Path) -> None:
    ours, near, far = (Fake(name) for name in (engines.OURS, "near", "far"))
    ours.samples, near.samples, far.samples = [0.5, 1.0, 9.0], [2.0, 2.5, 9.0], [4.0]
    mine, close, distant = compare(tmp_path, ours, near, far)
    assert close.ratios == [2.5, 2.5]
    assert distant.ratios == mine.ratios == []
    assert ours.orders == ["prepare", *["turn"] * 4, "drop"]
    assert near.orders == ["prepare", *["turn"] * 4, "drop"]
    assert far.orders == ["prepare", "turn", "turn", "drop"]
    assert report.row(close, 1)["ratio"] == 2.5
    assert report.row(distant, 1)["ratio"] is None


def test_at_most_so_many_rivals_and_none_that_failed(tmp_path: Path) -> None:
    fakes = [Fake(engines.OURS), *(Fake(f"{i}") for i in range(6)), Fake("no", problem="no")]
    scores = compare(tmp_path, *fakes)
    assert sum(bool(score.ratios) for score in scores) == duels.RIVALS
    assert not compare(tmp_path, Fake("one"), Fake("two"))[0].ratios


def test_a_share_is_taken_between_two_copies(tmp_path: Path) -> None:
    case = dataclasses.replace(DOUBLE, copy_share=0.5)
    rates = iter([256.0, 768.0, 256.0])
    fakes = Fake(engines.OURS), Fake("eager")
    scores = contest.compare(
        case, fakes, tmp_path / "case", QUICKLY, copy=lambda: next(rates, None)
    )
    # 64 bytes in 0.1875 s, beside copies at 512 bytes per second.
    assert scores[0].shares == pytest.approx([64 / 0.1875 / 512] * 2)
    assert scores[1].shares == []
    assert report.row(scores[0], 1)["share"] == pytest.approx(2 / 3)


def test_a_peer_that_cannot_run_does_not_stop_the_others(tmp_path: Path) -> None:
    broken, dying, well = compare(
        tmp_path, Fake("a", problem="no"), Fake("b", dies=True), Fake("c")
    )
    assert (broken.problem, dying.problem, well.problem) == ("no", "it died", "")
    assert report.row(broken, 0) == {"peer": "a", "problem": "no"}
    assert report.row(dying, 0)["problem"] == "it died"
    assert len(well.samples) == 4


def test_the_reference_is_computed_in_float64() -> None:
    case = table.Case("gather", "gather_rows", table.rows_of_table(5, 7, 3), 0)
    values, rows = case.inputs()
    expected = contest.reference(case, (values, rows))
    assert expected.dtype == np.float64
    assert np.array_equal(expected, values[rows].astype(np.float64))


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
    assert max_error(np.array(result, np.float32), np.array([1.0, 2.0])) == error


def test_small_results_have_absolute_errors_and_empty_ones_none() -> None:
    assert max_error(np.array([0.5], np.float32), np.array([0.25])) == 0.25
    assert max_error(np.zeros(0, np.float32), np.zeros(0)) == 0.0


def test_accuracy_is_twice_that_of_eager_or_rounding() -> None:
    assert as_good_as(2e-6, 1e-6)
    assert not as_good_as(2.1e-6, 1e-6)
    assert as_good_as(ROUNDING, 0.0)
    assert not as_good_as(math.inf, 1e-6)


def test_what_others_do_in_a_silence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    silent = silence.Silence()
    silent.keep(0)
    assert silent.busy() is None
    seconds = iter([10.0, 10.5])
    monkeypatch.setattr(silence, "busy_seconds", lambda: next(seconds))
    silent.keep(0.03)
    assert silent.busy() == pytest.approx(0.5 / 0.01, rel=0.5)


def test_busy_seconds_are_all_but_idling_and_waiting(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 20 30 9999 8888 1 2 47 5 6\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
    assert silence.busy_seconds(stat) == pytest.approx(200 / os.sysconf("SC_CLK_TCK"))
    assert silence.busy_seconds(tmp_path / "none") is None


def test_a_busy_machine_is_told(tmp_path: Path) -> None:
    found = results(tmp_path, Fake(engines.OURS), Fake("eager"))
    for busy, told in ((0.5, True), (0.01, False), (None, False)):
        report.finish(found, None, busy)
        assert ("**The machine was busy" in page.markdown(found)) == told


# --- the worker and its process -------------------------------------------------------------


def test_a_worker_obeys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker.importlib, "import_module", lambda name: FakeEngine)
    found = worker.Worker("jax", 1)
    assert found.obey({"do": "describe"})["outputs"] == "new"
    assert found.obey({"do": "turn", "seconds": 0}) == {
        "problem": "RuntimeError: there is no case to run"
    }
    np.save(tmp_path / "input00.npy", np.ones(3))
    answer = found.obey({"do": "prepare", "program": "twice", "folder": str(tmp_path)})
    assert answer["first_call"] > 0
    assert set(answer) == {"first_call"}
    assert np.load(tmp_path / "jax.npy").tolist() == [2, 2, 2]
    assert len(found.obey({"do": "turn", "seconds": 0})["samples"]) == 2
    assert found.obey({"do": "drop"}) == {}
    assert "no such program" in found.obey(
        {"do": "prepare", "program": "thrice", "folder": str(tmp_path)}
    )["problem"]  # fmt: skip


@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (1 << 20,)])
def test_inputs_begin_on_a_cache_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...]
) -> None:
    monkeypatch.setattr(worker.importlib, "import_module", lambda name: FakeEngine)
    seen: list[np.ndarray[Any, Any]] = []
    monkeypatch.setattr(FakeEngine, "seen", seen)
    array = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    # Several, which no allocator puts all on such a place by chance.
    for i in range(3):
        np.save(tmp_path / f"input0{i}.npy", array)
    found = worker.Worker("jax", 1)
    found.obey({"do": "prepare", "program": "twice", "folder": str(tmp_path)})
    assert len(seen) == 3
    for given in seen:
        assert given.ctypes.data % 64 == 0
        assert given.dtype == array.dtype
        np.testing.assert_array_equal(given, array)


class FakeEngine:
    seen: ClassVar[list[Any]] = []
    OUTPUTS: ClassVar = {"jax": "new"}
    DISTRIBUTIONS: ClassVar = {"jax": ("numpy",)}

    @staticmethod
    def warm_up(name: str, threads: int) -> None:
        assert (name, threads) == ("jax", 1)

    @staticmethod
    def prepare(name: str, program: str, inputs: tuple[Any, ...]) -> engines.Prepared:
        if program != "twice":
            raise ValueError("no such\nprogram")
        FakeEngine.seen.extend(inputs)
        return engines.Prepared(lambda: 2 * inputs[0], np.asarray)


def member(tmp_path: Path, body: str) -> crew.Member:
    code = (
        f"import sys, json, os, time\nfor line in sys.stdin:\n    order = json.loads(line)\n{body}"
    )
    return crew.Member("x", 1, {}, tmp_path, [sys.executable, "-c", code])


def test_a_process_answers_until_it_is_closed(tmp_path: Path) -> None:
    peer = member(tmp_path, "    print(json.dumps({'pid': os.getpid()} | order), flush=True)")
    first, second = peer.ask("a", x=1), peer.ask("b")
    assert (first["do"], first["x"]) == ("a", 1)
    assert second["pid"] == first["pid"]
    peer.close()
    assert peer.ask("c")["pid"] != first["pid"]
    peer.close()
    peer.close()


def test_a_process_that_dies_says_how_and_is_replaced(tmp_path: Path) -> None:
    body = (
        "    if order['do'] == 'die':\n"
        "        print('alas', file=sys.stderr, flush=True)\n"
        "        os.kill(os.getpid(), 11)\n"
        "    print('{}', flush=True)"
    )
    peer = member(tmp_path, body)
    assert peer.ask("live") == {}
    name = signal.Signals(11).name
    assert peer.ask("die")["problem"] == f"the process was ended by {name}; its last words: alas"
    assert peer.ask("live") == {}
    peer.close()


def test_a_process_that_ends_by_itself_or_is_silent(tmp_path: Path) -> None:
    assert (
        "ended with status 3; it said nothing"
        in member(tmp_path, "    sys.exit(3)").ask("a")["problem"]
    )
    peer = member(tmp_path, "    time.sleep(60)")
    assert peer.ask("a", patience_s=0.2)["problem"] == "no answer after 0 s"


def test_a_crew_is_ended(tmp_path: Path) -> None:
    with crew.crew(("eager",), 1, {}, tmp_path) as (only,):
        answer = only.ask("describe")
        assert answer["versions"] == {"torch": torch.__version__}
        np.save(tmp_path / "input00.npy", np.ones((2, 4), np.float32))
        only.ask("prepare", program="softmax", folder=str(tmp_path))
        assert np.load(tmp_path / "eager.npy").tolist() == [[0.25] * 4] * 2
        process = only._process
        assert process is not None
    assert process.poll() is not None


# --- what is asked --------------------------------------------------------------------------


def row(peer: str, seconds: float, error: float | None = 1e-7) -> dict[str, Any]:
    return {
        "peer": peer, "minimum": seconds, "first_call": seconds + 0.5, "overhead": 0.1,
        "max_error": error,
    }  # fmt: skip


def judged(*rows: dict[str, Any], share: float = 0.0, **facts: Any) -> dict[str, Any]:
    case = {
        "peers": list(rows), "bar": 1.0, "bar_floor": 0.0, "copy_share": share,
        "floor_bytes": 1000, "flops": 0, "operands": "float32", **facts,
    }  # fmt: skip
    peaks = {"float32": 1e6, "bfloat16": None, "int8": 4e6}
    return verdict.judge(case, {"memory": {"main": {"copy": 1e6}}, "peaks": peaks})


def test_a_verdict() -> None:
    found = judged(row(engines.OURS, 2e-3), row("eager", 8e-3), row("inductor", 5e-3))
    assert found["best"] == "inductor"
    assert found["to_best"] == found["to_inductor"] == pytest.approx(2.5)
    assert found["floor"] == pytest.approx(1e-3)
    assert found["share"] == pytest.approx(0.5)
    assert found["compile"] == pytest.approx(0.4)
    assert found["accurate"] is True
    assert found["met"] is True
    assert found["standing"] == "met"
    assert found["rate"] is found["peak_share"] is None


def test_a_share_beside_copies_counts_more_than_the_machines_rate() -> None:
    ours = row(engines.OURS, 2e-3)
    assert judged({**ours, "share": 0.75})["share"] == pytest.approx(0.75)
    assert judged({**ours, "share": None})["share"] == pytest.approx(0.5)


def test_duels_count_more_than_the_fastest_calls() -> None:
    ours, lucky, steady = row(engines.OURS, 2e-3), row("jax", 1e-3), row("eager", 3e-3)
    found = judged(ours, {**lucky, "ratio": 1.5}, {**steady, "ratio": 1.2}, row("iree", 9e-4))
    assert (found["best"], found["to_best"]) == ("eager", 1.2)
    assert judged(ours, lucky, steady)["to_best"] == pytest.approx(0.5)


def test_each_condition_of_a_bar_counts() -> None:
    ours, eager = row(engines.OURS, 2e-3), row("eager", 8e-3)
    assert judged(ours, eager, bar=4.0)["met"]
    assert not judged(ours, eager, bar=4.1)["met"]
    assert not judged(ours, eager, share=0.6)["met"]
    assert not judged(row(engines.OURS, 2e-3, 2.1e-7), eager)["met"]
    assert not judged(row(engines.OURS, 2e-3, None), eager)["met"]


def test_what_does_not_exist_is_none() -> None:
    alone = judged(row(engines.OURS, 2e-3))
    assert (alone["best"], alone["to_best"], alone["met"]) == (None, None, None)
    failed = judged({"peer": engines.OURS, "problem": "no"}, row("eager", 1e-3))
    assert (failed["best"], failed["to_best"], failed["met"]) == ("eager", None, False)
    assert verdict.compile_seconds({"overhead": None}) is None
    assert verdict.geometric_mean([None]) is None
    assert verdict.geometric_mean([2.0, None, 8.0]) == pytest.approx(4.0)


def test_a_case_that_we_cannot_run_is_not_met_in_the_summary(tmp_path: Path) -> None:
    found = results(tmp_path, Fake(engines.OURS, problem="no"), Fake("eager"))
    assert (found["summary"]["rows_met"], found["summary"]["rows_judged"]) == (0, 1)
    assert report.failures(found) == ["softmax 2x4: no"]


def test_the_cases_are_those_of_the_table() -> None:
    programs = [case.program for case in table.CASES]
    assert len(programs) == len(set(programs)) == 17
    assert all(callable(getattr(in_torch, name)) for name in programs)
    bars = {case.program: case.bar for case in table.CASES if case.bar != 1}
    assert bars == {"blur_x_blur_y": 5, "adaptive_sharpen": 5, "heat": 3}


def test_every_framework_has_every_program() -> None:
    """Read, not imported: the other frameworks need not be here."""
    folder = Path(in_torch.__file__).parent
    for name in ("in_jax.py", "in_tensorflow.py"):
        text = (folder / name).read_text()
        assert [c.program for c in table.CASES if f"\ndef {c.program}(" not in text] == []


def test_cases_are_chosen_by_parts_of_names() -> None:
    assert table.named("") == table.CASES
    assert [case.program for case in table.named("heat, total")] == ["total", "heat"]
    with pytest.raises(ValueError, match="no case contains 'nonsense'; the cases are blur"):
        table.named("heat,nonsense")


def test_inputs_are_the_same_each_time() -> None:
    for make in (table.normal((3,)), table.uniform((3,)), table.picture(4, 5)):
        assert np.array_equal(make()[0], make()[0])
        assert make()[0].dtype == np.float32


def test_the_prediction_is_the_sum_over_the_kernels() -> None:
    def kernel(seconds: float, calls: int) -> dict[str, Any]:
        return {"calls": calls, "estimate": {"predicted_seconds": seconds}}

    parts = [{"kernels": [kernel(2.0, 1), kernel(1.0, 3)]}, {"kernels": [kernel(4.0, 1)]}]
    assert predictions.predicted_seconds({"parts": parts}) == 7.0
    parts[1]["kernels"].append({"calls": 1})
    assert predictions.predicted_seconds({"parts": parts}) is None
    assert predictions.predicted_seconds({"parts": []}) is None


def test_capture_takes_time_that_is_not_the_functions() -> None:
    assert 0 < pytorch.capture_seconds(lambda x: x + 1, [torch.ones(3)]) < 60


# --- the programs ---------------------------------------------------------------------------


def test_the_reference_of_the_blur_is_the_two_convolutions() -> None:
    image = torch.rand(3, 9, 12, dtype=torch.float64)
    torch.testing.assert_close(measure.blur_reference(image), in_torch.blur_x_blur_y(image))


def test_sharpening_changes_edges_and_leaves_flat_parts() -> None:
    flat = torch.full((40, 48), 0.3, dtype=torch.float64)
    encoded = torch.sqrt(flat * flat * (0.8 + 0.2 * flat))
    # Far from the border, outside of which it is dark.
    torch.testing.assert_close(in_torch.adaptive_sharpen(flat)[8:-8, 8:-8], encoded[8:-8, 8:-8])
    edge = flat.clone()
    edge[:, 24:] = 0.6
    result = in_torch.adaptive_sharpen(edge)[8:-8, 8:-8]
    assert result.max() > torch.sqrt(torch.tensor(0.6 * 0.6 * 0.92))
    assert result.min() < encoded.min()


def test_heat_flows_and_the_border_keeps_its_temperature() -> None:
    plate = torch.zeros(8, 8, dtype=torch.float64)
    plate[0] = 1.0
    later = in_torch.heat(plate)
    assert torch.equal(later[0], plate[0])
    assert torch.equal(later[1:, 0], plate[1:, 0])
    inner = later[1:-1, 1:-1]
    assert bool((inner[:-1] > inner[1:]).all())


# --- what is written ------------------------------------------------------------------------


def test_json_and_page_hold_the_same(tmp_path: Path) -> None:
    found = results(tmp_path, Fake(engines.OURS), Fake("eager"), Fake("jax", problem="no jax"))
    report.finish(found, CEILINGS)
    stored = json.loads(report.write(found, tmp_path).read_text())
    assert stored["schema"] == report.SCHEMA
    (case,) = stored["cases"]
    assert [entry["peer"] for entry in case["peers"]] == [engines.OURS, "eager", "jax"]
    assert case["peers"][0]["minimum"] == 0.125
    assert case["verdict"]["floor"] == pytest.approx(16e-9)
    text = page.markdown(stored, "x.png")
    assert "| case | polyblocks | eager | jax | floor |" in text
    assert "| softmax 2x4 | 125 | **125** | – |" in text
    assert "| float32 multiply-adds | 100 Gop/s |" in text
    assert "| int8 multiply-adds | – |" in text
    assert "- softmax 2x4: jax: no jax" in text
    assert "![ratios and distance to the floor](x.png)" in text
    assert "| eager | new | x 1 |" in text


def test_every_table_has_as_many_cells_as_heads(tmp_path: Path) -> None:
    found = results(tmp_path, Fake(engines.OURS), Fake("eager"))
    report.finish(found, CEILINGS)
    lines = page.markdown(found).splitlines()
    for before, after in itertools.pairwise(lines):
        if before.startswith("|") and after.startswith("|"):
            assert before.count("|") == after.count("|")


def test_wrong_results_are_failures(tmp_path: Path) -> None:
    found = results(tmp_path, Fake("eager", lambda x: x), Fake("jax", lambda x: x * math.nan))
    eager, jax = found["cases"][0]["peers"]
    assert not eager["correct"]
    assert jax["max_error"] is None
    assert [line.split(" by ")[0] for line in report.failures(found)] == [
        "softmax 2x4: eager is wrong",
        "softmax 2x4: jax is wrong",
    ]


def test_publishing_writes_three_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = results(tmp_path, Fake(engines.OURS), Fake("inductor"))
    assert publish(found, tmp_path / "out") == 0
    base = report.place(found, tmp_path / "out").name
    endings = sorted(path.suffix for path in (tmp_path / "out").glob(f"{base}.*"))
    assert endings == [".json", ".md", ".png"]
    assert publish(results(tmp_path, Fake("eager", lambda x: x)), tmp_path / "out") == 1
    assert "error: softmax 2x4: eager is wrong by" in capsys.readouterr().err


def test_the_plot_takes_cases_that_nobody_could_run(tmp_path: Path) -> None:
    found = results(tmp_path, Fake(engines.OURS, problem="no"), Fake("eager", problem="no"))
    report.finish(found, CEILINGS)
    plot.draw(found, tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_the_better_of_two_measurements() -> None:
    other = json.loads(json.dumps(CEILINGS))
    other["memory"]["main"]["copy"] = 6e9
    other["peaks"]["float32"] = 5e10
    found = better(CEILINGS, other)
    assert found["memory"]["main"] == {"read": 5e9, "copy": 6e9}
    assert found["peaks"] == {"float32": 1e11, "int8": None}


# --- the command line -----------------------------------------------------------------------


def test_unknown_names_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "nonsense", "--results", str(tmp_path)]) == 1
    assert "no case contains 'nonsense'" in capsys.readouterr().err
    with pytest.raises(ValueError, match="no peer is called 'gcc'; the peers are polyblocks"):
        chosen_peers("gcc")


def test_peers_that_are_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew, "PEERS_PYTHON", tmp_path / "python")
    with pytest.raises(ValueError, match="peer 'jax' is not installed; `make bench` does it"):
        chosen_peers("eager,jax")
    assert chosen_peers("inductor, eager") == (engines.OURS, "eager", "inductor")


def test_reused_peers_are_marked_and_not_published(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = results(tmp_path, Fake(engines.OURS), Fake("jax"))
    path = report.write(found, tmp_path)
    assert main(["--reuse", str(path), "--results", "bench/results"]) == 1
    assert "are not for publishing; name another folder" in capsys.readouterr().err
    described, rows = report.rows_of(path)
    assert list(described) == ["jax"]
    assert [entry["peer"] for entry in rows["softmax 2x4"]] == ["jax"]
    found["reused"] = path.name
    assert "**Not for publishing:**" in page.markdown(found)
    path.write_text('{"schema": 1}')
    with pytest.raises(ValueError, match="has schema 1; this program reads 3"):
        report.rows_of(path)


def test_only_complete_results_go_where_results_are_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = []
    runs = iter([True, True, False, True])
    monkeypatch.setattr("bench.__main__.run", lambda *_: next(runs))
    monkeypatch.setattr("bench.__main__.publish", lambda _, place: places.append(place) or 0)
    monkeypatch.setattr(crew, "PEERS_PYTHON", Path(sys.executable))
    for arguments in ([], ["--only", "heat"], [], ["--quick"]):
        assert main(arguments) == 0
    assert places == [RESULTS, OTHERS, OTHERS, OTHERS]


def test_an_interrupted_run_keeps_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def compare(case: table.Case, *_: Any) -> list[contest.Score]:
        if case.program == "log_softmax":
            os.kill(os.getpid(), signal.SIGTERM)
        return [contest.Score(engines.OURS, 0.5, samples=[0.1], error=0.0)]

    monkeypatch.setattr(contest, "compare", compare)
    monkeypatch.setattr("bench.__main__.ceilings", lambda _: None)
    found = report.header(1, 1, "memory")
    handler = signal.getsignal(signal.SIGTERM)
    try:
        assert not run(found, table.named("softmax"), (), {}, tmp_path)
    finally:
        signal.signal(signal.SIGTERM, handler)
    assert "interrupted after 1 of 2 cases" in capsys.readouterr().err
    assert [case["program"] for case in found["cases"]] == ["softmax"]
    assert found["summary"]["rows_judged"] == 0


# --- the demo's part ------------------------------------------------------------------------


def timings(*contestants: peers.Contestant) -> list[measure.Timing]:
    inputs = (torch.arange(8.0),)
    expected = 2 * inputs[0].double()
    return measure.compare(contestants, inputs, expected, rounds=2, idle_s=0, turn_s=0)


def fails() -> Any:
    def call(*inputs: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("no such\nthing")

    return call


def test_contestants_of_one_process() -> None:
    eager, broken = timings(peers.eager(lambda x: 2 * x), peers.Contestant("x", fails))
    assert len(eager.samples) == 2
    assert eager.minimum <= eager.median
    assert eager.max_error == 0
    assert broken.problem == "RuntimeError: no such thing"
    assert math.isnan(broken.first_call)


def test_inductor_without_a_compiler_says_what_to_install() -> None:
    from torch._inductor.exc import InvalidCxxCompiler

    problem = RuntimeError("backend failed")
    problem.__cause__ = InvalidCxxCompiler()
    assert "install g++" in peers.inductor(torch.neg).explain(problem)
    assert "g++" not in peers.inductor(torch.neg).explain(RuntimeError("other"))


def test_the_copy_moves_the_bytes_that_it_is_asked_for() -> None:
    call = peers.copy(800).prepare()
    assert 2 * call().nbytes == 800
