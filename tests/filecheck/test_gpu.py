"""Runs every file of the folder ``gpu``: a module, passes for a vendor's GPU, what comes out.

First line: ``// PASSES: name,name`` with names of the standard pipeline or of the target's S4;
``// TARGET: amdgpu gfx1100`` names target and architecture, by default ``nvgpu sm_80``.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import gpu_kernels
import pytest

from polyblocks import mlir
from polyblocks.options import CompileOptions
from polyblocks.passes.standard import standard_pipeline
from polyblocks.pipeline import PassContext, run_stage

FOLDER = Path(__file__).parent
FILES = sorted((FOLDER / "gpu").glob("*.mlir"))

_spec = importlib.util.spec_from_file_location("filecheck_runner", FOLDER / "test_filecheck.py")
assert _spec is not None
assert _spec.loader is not None
_runner = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_runner)


def run_passes(text: str) -> str:
    """The module after the passes that the text's own header names."""
    names = _runner._header(text, "PASSES").split(",")
    name, arch = _runner._header(text, "TARGET", "nvgpu sm_80").split()
    target = getattr(gpu_kernels, name)(arch)
    options = CompileOptions(target=name, arch=arch)
    stages = standard_pipeline(target, options).stages.values()
    known = {p.name: p for passes in stages for p in passes}
    known |= {p.name: p for p in gpu_kernels.stage_s4(target)}
    module = mlir.parse(text)
    context = PassContext.create(target, options)
    run_stage("S4", [known[name.strip()] for name in names], module, context)
    return str(module)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = run_passes(path.read_text())
    status, messages = _runner.check(path, output, monkeypatch)
    assert status == 0, f"{messages}\n{output}"
