"""The group of contractions: its table, its programs in three frameworks, verdicts and page."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
import tensorflow as tf
import torch
from bench import arrays, calls, contest, duels, engines, groups, page, plot, report, table, verdict
from bench.__main__ import OTHERS, RESULTS, main, who_take_part
from bench.contractions.table import CASES, MODEL_TOLERANCE, SQUARE, TOLERANCES, clustered, random
from bench.engines import pytorch
from bench.errors import max_error
from bench.models import MODELS, with_weights
from tests.support.sweeps import sweep
from torch.utils.flop_counter import FlopCounterMode

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

pytestmark = pytest.mark.usefixtures("compiled_in_this_process")

#: Arguments of odd sizes for every program, by name and type.
SMALL: dict[tuple[str, str], Callable[[], table.Arrays]] = {
    ("matmul", "float32"): random((2, 7, 13), (2, 13, 9)),
    ("matmul", "bfloat16"): random((7, 13), (13, 9), dtype="bfloat16"),
    ("matmul_int8", "int8"): random((33, 24), (24, 16), dtype="int8"),
    ("matmul_transposed", "float32"): random((7, 13), (9, 13)),
    ("mlp", "float32"): random((7, 13), (17, 13), (17,), (5, 17), (5,)),
    ("linear_residual_norm", "float32"): random((7, 13), (9, 13), (9,), (7, 9), (9,), (9,)),
    ("nearest", "float32"): clustered(101, 7, 5),
    ("conv_bias_relu", "float32"): random((2, 5, 9, 11), (6, 5, 3, 3), (6,)),
    ("strided_conv_bias_relu", "float32"): random((2, 3, 14, 14), (6, 3, 7, 7), (6,)),
    ("conv_bias_relu_nhwc", "float32"): random((2, 9, 11, 5), (6, 3, 3, 5), (6,)),
    ("strided_conv_bias_relu_nhwc", "float32"): random((2, 14, 14, 3), (6, 7, 7, 3), (6,)),
    ("depthwise", "float32"): random((2, 6, 9, 11), (6, 1, 3, 3)),
}
PROGRAMS = sorted(SMALL)
#: Of products, convolutions and distances, and of every type.
QUICK = [
    case
    for case in PROGRAMS
    if case[1] != "float32" or case[0] in ("conv_bias_relu", "depthwise", "mlp", "nearest")
]
IMAGES = [case for case in CASES if case.program.startswith("models.")]


def function_of(language: str, name: str) -> Callable[..., Any]:
    return engines.written_in(language, f"contractions.{name}")


def reference(name: str, inputs: table.Arrays) -> np.ndarray[Any, Any]:
    return contest.reference(table.Case(name, f"contractions.{name}", tuple, 0), inputs)


#: Largest errors at these sizes.
NEAR = {"float32": 1e-5, "bfloat16": 1e-2, "int8": 0.0}


# --- the table ------------------------------------------------------------------------------


def test_what_is_asked_of_the_rows() -> None:
    names = [case.name for case in CASES]
    assert len(names) == len(set(names)) == 28
    assert all(0 < case.bar_floor < case.bar for case in CASES)
    assert {case.name: case.bar for case in CASES if case.bar != 1} == {
        "batched matmul 4096x(16x16x16)": 1.2,
        "MLP 128x768x3072x768": 1.05,
        "matmul 128x3072x768 + residual + layer norm": 1.1,
        "nearest of 1024 centres 65536x64": 1.5,
        "depthwise 3x3 192 56x56 b1": 1.2,
    }
    assert {case.bar_floor for case in CASES if "NHWC" in case.name} == {0.75}
    for case in CASES:
        if case not in IMAGES:
            # Numbers of centres are right or wrong.
            exact = case.program == "contractions.nearest"
            assert case.tolerance == (0.0 if exact else TOLERANCES[case.operands])


def test_every_program_has_small_arguments() -> None:
    used = {(case.program.rpartition(".")[2], case.operands) for case in CASES}
    used -= {(case.program.rpartition(".")[2], case.operands) for case in IMAGES}
    assert used == set(SMALL)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_operations_and_bytes_are_those_of_the_program(case: table.Case) -> None:
    """Counted by PyTorch on tensors without memory."""
    inputs = [arrays.tensor(x).to("meta") for x in case.inputs()]
    moved = sum(x.nbytes for x in inputs)
    function = engines.written_in("in_torch", case.program)
    if isinstance(function, torch.nn.Module):
        state = function.to("meta").state_dict().values()
        moved += sum(x.nbytes for x in state if x.is_floating_point())
    if case.operands == "int8":
        # The counter knows no integers.
        function, inputs = function_of("in_torch", "matmul"), [x.float() for x in inputs]
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), counter:
        result = function(*inputs)
    assert counter.get_total_flops() == case.flops
    assert moved + result.nbytes == case.floor_bytes


def test_arguments_are_the_same_each_time_and_not_the_same_as_each_other() -> None:
    for dtype in TOLERANCES:
        make = random((3, 4), (3, 4), dtype=dtype)
        (one, other), again = make(), make()
        assert one.dtype.name == dtype
        assert np.array_equal(one, again[0])
        assert not np.array_equal(one, other)
    assert random((4096,), dtype="int8")()[0].min() == -128


def test_no_point_is_nearly_as_near_to_another_centre() -> None:
    points, centres = clustered(1000, 1024, 64)()
    squares = (centres.astype(float) ** 2).sum(1) - 2 * points.astype(float) @ centres.T
    first, second = np.partition(squares, 1)[:, :2].T
    assert (second - first).min() > 1


def test_groups_are_chosen_by_name() -> None:
    assert list(groups.GROUPS) == ["memory", "contractions", "attention", "pipelines"]
    assert groups.GROUPS["memory"].cases == table.CASES
    found = table.named("depthwise,matmul_int8", CASES)
    assert [case.operands for case in found] == ["float32", "int8"]
    with pytest.raises(ValueError, match="no case contains 'softmax'; the cases are matmul 1024"):
        table.named("softmax", CASES)


# --- the programs ---------------------------------------------------------------------------


@pytest.mark.parametrize("case", sweep(PROGRAMS, *QUICK), ids="-".join)
def test_three_frameworks_agree(case: tuple[str, str]) -> None:
    name, dtype = case
    inputs = SMALL[name, dtype]()
    expected = reference(name, inputs)
    for language, convert in (
        ("in_torch", arrays.tensor),
        ("in_jax", jax.numpy.asarray),
        ("in_tensorflow", tf.constant),
    ):
        function = function_of(language, name)
        if language == "in_tensorflow":
            # Convolutions of NCHW are XLA's alone on a CPU.
            function = tf.function(function, jit_compile=True)
        result = engines.joined(function(*map(convert, inputs)))
        assert max_error(result, expected) <= NEAR[dtype], language


@pytest.mark.parametrize("case", sweep(PROGRAMS, *QUICK), ids="-".join)
def test_ours_is_near_float64(case: tuple[str, str]) -> None:
    name, dtype = case
    inputs = SMALL[name, dtype]()
    compiled = polyblocks_jit_torch(
        function_of("in_torch", name), compile_options={"strict_target": True}
    )
    result = engines.joined(compiled(*map(arrays.tensor, inputs)))
    assert max_error(result, reference(name, inputs)) <= NEAR[dtype]


def test_channels_last_is_what_pytorch_calls_so() -> None:
    image, weight, _ = (
        torch.from_numpy(x) for x in SMALL["conv_bias_relu_nhwc", "float32"]()
    )  # fmt: skip
    for array in (image, weight):
        assert array.permute(0, 3, 1, 2).is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize(
    "name, parameters",
    [
        ("ResNet-18", 11_689_512),
        ("ResNet-50", 25_557_032),
        ("MobileNetV2", 3_504_872),
        ("ConvNeXt-T", 28_589_128),
    ],
)
def test_models_have_the_published_number_of_parameters(name: str, parameters: int) -> None:
    with torch.device("meta"):
        module, _ = MODELS[name]()
    assert sum(x.numel() for x in module.parameters()) == parameters
    assert not module.training


def test_weights_are_the_same_each_time_and_nothing_is_neutral() -> None:
    state = torch.random.get_rng_state()
    one, other = (with_weights("MobileNetV2").state_dict() for _ in range(2))
    assert torch.equal(state, torch.random.get_rng_state())
    assert all(torch.equal(one[key], other[key]) for key in one)
    statistics = [value for key, value in one.items() if "running" in key]
    assert statistics
    assert all(value.std() > 0.01 for value in statistics)
    scales = [x for key, x in with_weights("ConvNeXt-T").state_dict().items() if "scale" in key]
    assert len(scales) == 18
    assert min(float(scale.min()) for scale in scales) >= 0.1


def test_models_are_written_in_pytorch_only() -> None:
    assert isinstance(engines.written_in("in_torch", "models.MobileNetV2"), torch.nn.Module)
    with pytest.raises(NotImplementedError, match="ResNet-50 is written in PyTorch only"):
        engines.written_in("in_jax", "models.ResNet-50")


@pytest.mark.slow
@pytest.mark.parametrize("case", IMAGES, ids=lambda c: c.name)
def test_ours_runs_the_models(case: table.Case) -> None:
    inputs = random((1, 3, 64, 64))()
    prepared = pytorch.prepare(engines.OURS, case.program, inputs)
    with torch.no_grad():
        result = prepared.to_numpy(prepared.call())
    assert max_error(result, contest.reference(case, inputs)) <= MODEL_TOLERANCE


# --- arrays and calls -----------------------------------------------------------------------


def test_bfloat16_goes_through_files_and_into_tensors(tmp_path: Path) -> None:
    (array,) = random((3, 5), dtype="bfloat16")()
    np.save(tmp_path / "x.npy", array)
    loaded = arrays.load(tmp_path / "x.npy")
    assert loaded.dtype == array.dtype
    assert np.array_equal(loaded, array)
    tensor = arrays.tensor(loaded)
    assert tensor.dtype == torch.bfloat16
    assert np.array_equal(engines.joined(tensor), array.astype(np.float32))


def test_one_long_call_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    for seconds, count in ((0.5, 2), (2.0, 1)):
        clock = itertools.count(0.0, seconds)
        monkeypatch.setattr(calls.time, "perf_counter", lambda clock=clock: next(clock))
        assert len(calls.timed(lambda: None, 0)) == count


def test_no_duels_about_what_is_decided() -> None:
    ours = contest.Score("ours", samples=[4.0, 5.0])
    for fastest, decided in ((1.2, True), (1.5, False), (11.0, False), (13.0, True)):
        rival: Any = (None, contest.Score("x", samples=[fastest, 20.0]))
        assert duels.decided(ours, [rival], 3.0) == decided
    assert not duels.decided(ours, [], 3.0)
    assert not duels.decided(ours, [(None, rival[1])], math.inf)  # type: ignore[list-item]


def test_a_beaten_rival_has_one_turn_and_ours_has_all(tmp_path: Path) -> None:
    class Fake:
        def __init__(self, name: str, seconds: float) -> None:
            self.name, self.seconds, self.turns = name, seconds, 0

        def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
            self.turns += do == "turn"
            if do == "prepare":
                np.save(Path(arguments["folder"]) / f"{self.name}.npy", np.ones((3, 5)))
            return {"first_call": 1.0, "samples": [self.seconds]}

    case = table.Case("x", "contractions.matmul", random((3, 4), (4, 5)), 0)
    for decided, turns in ((3.0, [3, 3, 1]), (math.inf, [3, 3, 3])):
        fakes = [Fake(engines.OURS, 9.0), Fake("fast", 1.0), Fake("slow", 4.0)]
        pace = contest.Pace(3, 0, 0, duels=0, decided=decided)
        contest.compare(case, fakes, tmp_path / str(decided), pace)
        assert [fake.turns for fake in fakes] == turns


# --- verdicts -------------------------------------------------------------------------------

CEILINGS = {
    "threads": 2,
    "peaks": {"float32": 1e11, "bfloat16": 2e11, "int8": None},
    "memory": {"main": {"read": 5e9, "copy": 4e9}},
    "levels": {"main": 1 << 20},
}


def row(peer: str, seconds: float, error: float = 1e-7, **facts: Any) -> dict[str, Any]:
    return {
        "peer": peer, "minimum": seconds, "first_call": seconds + 0.5, "overhead": 0.1,
        "max_error": error, "correct": True, "predicted": None, **facts,
    }  # fmt: skip


def results(cases: list[table.Case], *rows: dict[str, Any]) -> dict[str, Any]:
    found = report.header(3, 2, "contractions")
    for case in cases:
        report.add_case(found, case, list(rows))
    report.finish(found, CEILINGS)
    return found


def judged(case: table.Case, *rows: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = results([case], *rows)["cases"][0]["verdict"]
    return found


def ours(seconds: float, **facts: Any) -> dict[str, Any]:
    return row(engines.OURS, seconds, **facts)


def test_the_floor_is_of_operations_or_of_bytes() -> None:
    found = judged(SQUARE, ours(0.05))
    assert found["floor"] == pytest.approx(SQUARE.flops / 1e11)
    assert found["rate"] == pytest.approx(SQUARE.flops / 0.05)
    assert found["peak_share"] == pytest.approx(found["rate"] / 1e11)
    (vector,) = table.named("matmul 1x4096x4096", CASES)
    assert judged(vector, ours(0.05))["floor"] == pytest.approx(vector.floor_bytes / 4e9)


def test_the_ceiling_is_that_of_the_operands() -> None:
    bfloat16, int8 = table.named("bfloat16,int8", CASES)
    assert judged(bfloat16, ours(0.05))["peak_share"] == pytest.approx(bfloat16.flops / 0.05 / 2e11)
    alone = judged(int8, ours(0.05))
    assert alone["peak_share"] is None
    assert alone["floor"] == pytest.approx(int8.floor_bytes / 4e9)


def test_standings() -> None:
    eager = row("eager", 1.0)
    assert SQUARE.bar_floor == 0.85
    for mine, standing in (
        (ours(1.0), "met"),
        (ours(1.1), "short"),
        (ours(1.2), "below floor"),
        (ours(0.5, error=3e-7), "inaccurate"),
        (ours(1.2, error=3e-7), "below floor"),
        ({"peer": engines.OURS, "problem": "no"}, "failed"),
    ):
        found = judged(SQUARE, mine, eager)
        assert found["standing"] == standing
        assert found["met"] is (standing == "met")
    assert judged(SQUARE, ours(1.0))["standing"] is None


def test_predictions_are_near_on_both_sides() -> None:
    for predicted, off in ((0.5, 2.0), (2.0, 2.0), (1.25, 1.25), (None, None)):
        assert judged(SQUARE, ours(1.0, predicted=predicted))["misprediction"] == off
    verdicts = [{"misprediction": x} for x in (1.5, 1.6, 1.0, None, 3.0)]
    others = dict.fromkeys(("met", "to_inductor", "to_best", "compile"))
    cases = [{"verdict": others | one} for one in verdicts]
    assert verdict.summary(cases)["predicted_near"] == 0.5


def test_models_run_with_frozen_weights_too() -> None:
    (model,) = [case for case in CASES if case.name == "ResNet-18 b1"]
    assert engines.VARIANTS[engines.FROZEN] == {"freeze_weights": True}
    everybody = tuple(name for name in engines.ENGINES if name not in engines.HALIDE)
    assert who_take_part(engines.ENGINES, [model]) == everybody
    assert engines.FROZEN not in who_take_part(engines.ENGINES, [SQUARE])
    frozen = row(engines.FROZEN, 0.004) | {"predicted": 0.003}
    found = judged(model, row("eager", 0.01), ours(0.005), frozen)
    assert (found["way"], found["misprediction"]) == (engines.FROZEN, 0.004 / 0.003)


def test_a_variant_is_no_rival_and_runs_models_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(engines.VARIANTS, "polyblocks-x", {"num_threads": 1})
    eager, variant = row("eager", 1.0), row("polyblocks-x", 0.1)
    found = judged(SQUARE, ours(0.5), eager, variant)
    # The faster one of ours and its variants counts, and only if ours runs.
    assert (found["best"], found["way"], found["to_best"]) == ("eager", "polyblocks-x", 10.0)
    found = judged(SQUARE, ours(0.05), eager, variant)
    assert (found["way"], found["to_best"]) == (engines.OURS, 20.0)
    assert judged(SQUARE, eager, variant)["standing"] == "failed"
    times = {"polyblocks-x": 0.5, "eager": 1.0, engines.OURS: 2.0}
    running: Any = [(None, contest.Score(n, samples=[s])) for n, s in times.items()]
    assert [score.peer for _, score in duels.rivals(running)] == ["eager"]
    champion = duels.fastest_way(running, engines.OURS)
    assert champion is not None
    assert champion[1].peer == "polyblocks-x"
    champion = duels.fastest_way(running, "eager")
    assert champion is not None
    assert champion[1].peer == "eager"
    assert duels.fastest_way(running[:2], engines.OURS) is None
    assert engines.takes_part("polyblocks-x", "models.ResNet-50")
    assert not engines.takes_part("polyblocks-x", SQUARE.program)
    assert engines.takes_part(engines.OURS, SQUARE.program)
    prepared = pytorch.prepare("polyblocks-x", "contractions.matmul", random((3, 4), (4, 5))())
    assert prepared.to_numpy(prepared.call()).shape == (3, 5)
    assert prepared.facts()["overhead"] > 0


# --- what is written ------------------------------------------------------------------------


def test_the_page_of_contractions(tmp_path: Path) -> None:
    cases = list(table.named("1024x1024x1024,depthwise", CASES))
    found = results(
        cases, ours(0.02, predicted=0.025), row("eager", 0.03), row("inductor", 0.03, ratio=1.75)
    )
    text = page.markdown(json.loads(json.dumps(found)), "x.png")
    assert "# Contractions, " in text
    assert "float32 unless a row says otherwise" in text
    assert "0 rows are below their floors or failed. The cost model predicts 100 % of" in text
    assert "- geometric mean against the best peer: 1.75×, at least 1.00×: met" in text
    assert "- geometric mean against Inductor: 1.75×, at least 1.80×: not met" in text
    assert f"- {SQUARE.name} of the multiply-add ceiling: 107.37 %, at least 88.00 %: met" in text
    assert (
        f"| {SQUARE.name} | 107 | 107 | 1.75 | 1.00 | 0.85 | 1.75 | yes | 20 | – | 25 | 1.0e-07 | "
        "1.0e-07 | 0.40 |"
    ) in text
    for before, after in itertools.pairwise(text.splitlines()):
        if before.startswith("|") and after.startswith("|"):
            assert before.count("|") == after.count("|")
    plot.draw(found, tmp_path / "x.png")
    assert (tmp_path / "x.png").stat().st_size > 10_000


def test_the_page_says_short_and_below_floor() -> None:
    for seconds, word in ((1.1, "short"), (1.2, "below floor")):
        text = page.markdown(results([SQUARE], ours(seconds), row("eager", 1.0)))
        assert f"| {word} |" in text
        assert f"{int(word != 'short')} rows are below their floors or failed" in text
    assert "multiply-add ceiling: 1.79 %, at least 88.00 %: not met" in text
    assert "against Inductor: –, at least 1.80×: not measured" in text


def test_files_of_contractions_stand_beside_the_others(tmp_path: Path) -> None:
    found = results([SQUARE], ours(1.0))
    path = report.write(found, tmp_path)
    assert path.name.endswith("-contractions.json")
    found["group"] = "memory"
    other = report.write(found, tmp_path)
    assert path.name == other.name.replace(".json", "-contractions.json")
    assert json.loads(other.read_text())["cases"][0]["bar_floor"] == 0.85


def test_a_complete_group_is_published(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, int, Path]] = []

    def run(found: dict[str, Any], cases: Any, *_: Any) -> bool:
        seen.append((found["group"], len(cases), Path()))
        return True

    def publish(_: Any, place: Path) -> int:
        seen[-1] = (*seen[-1][:2], place)
        return 0

    monkeypatch.setattr("bench.__main__.run", run)
    monkeypatch.setattr("bench.__main__.publish", publish)
    monkeypatch.setattr("bench.__main__.chosen_peers", lambda _: tuple(engines.ENGINES))
    assert main(["--group", "contractions"]) == 0
    assert main(["--group", "contractions", "--only", "depthwise"]) == 0
    assert main([]) == 0
    assert seen == [
        ("contractions", 28, RESULTS),
        ("contractions", 1, OTHERS),
        ("memory", 17, RESULTS),
    ]


def test_the_groups_pace() -> None:
    pace = groups.GROUPS["contractions"].pace(3)
    assert (pace.rounds, pace.duels, pace.turn_s, pace.decided) == (3, 3, 0.1, 3.0)
    assert groups.GROUPS["memory"].pace(5) == dataclasses.replace(contest.Pace(), rounds=5)
