"""A pass of the standard pipeline, its file and its FileCheck test have one name."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
from tests.support.gpu_target import gpu_target

from polyblocks.options import CompileOptions
from polyblocks.passes.rules import steps
from polyblocks.passes.standard import standard_pipeline
from polyblocks.pipeline import UpstreamPass
from polyblocks_cpu.describe import describe

OPTIONS = CompileOptions(arch="x86-64-v4")
PASSES: dict[str, Any] = {
    p.name: p
    for target in (describe(OPTIONS), gpu_target())
    for passes in standard_pipeline(target, OPTIONS).stages.values()
    for p in steps(passes)
    if not isinstance(p, UpstreamPass)
}
FILECHECK = Path(__file__).parents[1] / "filecheck"


def test_all_kinds_of_targets_are_looked_at() -> None:
    assert {"vectorize-nests", "choose-kernels", "plan-memory"} <= PASSES.keys()


@pytest.mark.parametrize("name", PASSES)
def test_file_and_class_are_called_as_the_pass(name: str) -> None:
    made = type(PASSES[name])
    assert Path(inspect.getfile(made)).stem == name.replace("-", "_")
    words = "".join(word.capitalize() for word in name.split("-"))
    assert made.__name__ == f"{words}Pass"


@pytest.mark.parametrize("name", PASSES)
def test_every_pass_has_a_filecheck_test_that_runs_it(name: str) -> None:
    file = FILECHECK / f"{name}.mlir"
    header = file.read_text().splitlines()[0].removeprefix("// PASSES: ")
    assert name in header.split(",")
