"""What kernels move at the sizes of the benchmark, counted on a sample of their blocks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from bench.gpu_counts import CHIPS, blocks_of, cases, counted, main
from bench.pipelines import gpu_counts as pipelines
from bench.pipelines.table import CASES
from sweeps import sweep
from torch import Tensor
from torch._higher_order_ops import while_loop

import polyblocks
from polyblocks import driver

#: Bytes that threads ask for over those that nobody can avoid, at most.
BOUNDS = {
    "blur_x_blur_y": 1.05,
    "softmax": 1.05,
    "layer_norm": 1.05,
    "group_norm": 1.05,
    "elementwise_chain": 1.05,
    "heat": 1.25,
}
QUICK, FURTHER = ("blur_x_blur_y", "softmax"), ("layer_norm", "group_norm")


@pytest.mark.each_choice
@pytest.mark.parametrize("target", CHIPS)
@pytest.mark.parametrize("program", sweep(BOUNDS, *QUICK, extended=FURTHER))
def test_one_kernel_that_moves_what_it_must(program: str, target: str) -> None:
    (case,) = (c for c in cases() if c.program == program)
    found = counted(case, target, CHIPS[target], blocks_of(case))
    assert found.kernels == 1
    assert found.asked <= BOUNDS[program]
    assert found.conflicts == 0
    # Rows of the blur's result begin anywhere in a transaction.
    assert found.coalescing <= (1.2 if program == "blur_x_blur_y" else 1.02)


def pipeline(name: str) -> Any:
    (case,) = (c for c in CASES if c.program.endswith(f".{name}"))
    return case


@pytest.mark.parametrize(
    "case",
    sweep([("non_local_means", "nvgpu"), ("heat", "amdgpu")], ("heat", "amdgpu")),
    ids="-".join,
)
def test_a_pipeline_has_no_more_kernels_than_on_the_cpu(case: tuple[str, str]) -> None:
    name, target = case
    row = pipelines.counted(pipeline(name), target, CHIPS[target], 0)
    assert row.holds
    # Sums of 49 terms that are alike, and of the same terms, are one loop; steps are two in one.
    assert (row.kernels, row.launches) == {"non_local_means": (1, 1), "heat": (3, 101)}[name]
    assert row.asked is None


def test_what_pipelines_move(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["--group", "pipelines", "--only", "three arrays", "--target", "nvgpu"]
    assert main([*command, "--results", str(tmp_path)]) == 0
    (file,) = tmp_path.glob("*-gpu-counts-pipelines.json")
    (row,) = json.loads(file.read_text())
    assert (row["kernels"], row["launches"], row["holds"]) == (1, 1, True)
    assert row["moved"] > 1
    text = file.with_suffix(".md").read_text()
    assert text in capsys.readouterr().out
    assert "No more kernels than on the CPU: 1 of 1; 0 with a problem." in text


def test_a_pipeline_that_does_not_compile_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise polyblocks.errors.UnsupportedError("no such thing")

    monkeypatch.setattr(pipelines, "_built", refuse)
    row = pipelines.counted(pipeline("heat"), "nvgpu", "sm_90a", 0)
    assert (row.problem, row.holds) == ("no such thing", None)
    assert f"- {row.case} on sm_90a: no such thing" in pipelines.page([row])


def test_launches_of_a_loop_are_simulated_once_and_counted_all() -> None:
    def steps(x: Tensor) -> Tensor:
        def body(k: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
            return k + 1, x.softmax(-1)

        return while_loop(lambda k, _: k < 6, body, (torch.zeros((), dtype=torch.int64), x))[1]

    options = {"target": "nvgpu", "arch": "sm_90a", "simulate": True}
    made = polyblocks.aot(steps, [torch.zeros(64, 256)], options, frontend="torch")
    program: Any = driver.load(made)
    every, few = program.sample(3), program.sample(3, alike=True)
    assert len(few) < len(every) == sum(row["times"] for row in few)
    for key in ("sectors", "global_loaded", "global_stored"):
        wanted = sum(row["counts"][key] for row in every)
        assert sum(row["times"] * row["counts"][key] for row in few) == wanted
