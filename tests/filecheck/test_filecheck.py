"""Runs every ``*.mlir`` of this folder: a module, the passes in its first line, what must come out.

First line: ``// PASSES: name,name`` with names of the standard pipeline or of the CPU target;
``// ARCH: x86-64`` names the chip, by default ``x86-64-v4``; ``// TARGET: gpu`` stands for a GPU of
no vendor, ``bounded gpu`` for one that has bounded loads, ``copying gpu`` for one whose copies may
go past the registers, ``chaining gpu`` for one whose unit can compute products in turn, ``amdgpu``
for the target of that name, and ``// OPTIONS: name,name=value`` switches options on. The rest are
CHECK lines.
"""

from __future__ import annotations

import io
import re
import sys
from contextlib import redirect_stderr
from pathlib import Path

import pytest
from filecheck.matcher import Matcher
from filecheck.options import parse_argv_options
from tests.support.gpu_target import gpu_target

from polyblocks import mlir
from polyblocks.options import CompileOptions
from polyblocks.passes.rules import steps
from polyblocks.passes.standard import standard_pipeline
from polyblocks.pipeline import PassContext, run_stage
from polyblocks_amdgpu.describe import describe as describe_amdgpu
from polyblocks_cpu.describe import describe
from polyblocks_cpu.lower import stage_s4

FILES = sorted(Path(__file__).parent.glob("*.mlir"))


def run_passes(text: str) -> str:
    """The module after the passes that the text's own header names."""
    names = _header(text, "PASSES").split(",")
    given: dict[str, str | bool | int] = {"arch": _header(text, "ARCH", "x86-64-v4")}
    for option in filter(None, _header(text, "OPTIONS", "").split(",")):
        name, _, value = option.strip().partition("=")
        given[name] = int(value) if value.isdigit() else value or True
    options = CompileOptions.from_dict(given)
    *having, kind = _header(text, "TARGET", "cpu").split()
    describe_kind = describe_amdgpu if kind == "amdgpu" else describe
    target = gpu_target(**dict.fromkeys(having, True)) if kind == "gpu" else describe_kind(options)
    pipeline = standard_pipeline(target, options)
    known = {p.name: p for passes in pipeline.stages.values() for p in steps(passes)}
    if kind != "amdgpu":
        for profile in (True, False):
            known |= {p.name: p for p in stage_s4(describe(options), profile)}
    module = mlir.parse(text)
    passes = [known[name.strip()] for name in names]
    run_stage("S4", passes, module, PassContext.create(target, options))
    return str(module)


def _header(text: str, key: str, default: str | None = None) -> str:
    match = re.search(rf"^// {key}: (.*)$", text, re.MULTILINE)
    if match is None and default is None:
        raise ValueError(f"the file has no line '// {key}: …'")
    return match[1] if match else str(default)


def check(expected: Path, output: str, monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    """FileCheck's exit status and what it says."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(output))
    messages = io.StringIO()
    with redirect_stderr(messages):
        status = Matcher.from_opts(parse_argv_options(["filecheck", str(expected)])).run()
    return status, messages.getvalue()


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = run_passes(path.read_text())
    status, messages = check(path, output, monkeypatch)
    assert status == 0, f"{messages}\n{output}"


def test_runner_notices_a_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "wrong.mlir"
    path.write_text("// CHECK: func.func @other\n")
    status, _ = check(path, "func.func @main() {}", monkeypatch)
    assert status != 0


def test_header_is_required() -> None:
    with pytest.raises(ValueError, match="no line '// PASSES: …'"):
        run_passes("module {}")
