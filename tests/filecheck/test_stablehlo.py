"""Runs every file of the folder ``stablehlo``: a StableHLO module, and what it is lowered to."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from polyblocks import stablehlo

FOLDER = Path(__file__).parent
FILES = sorted((FOLDER / "stablehlo").glob("*.mlir"))

_spec = importlib.util.spec_from_file_location("filecheck_runner", FOLDER / "test_filecheck.py")
assert _spec is not None
assert _spec.loader is not None
_runner = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_runner)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = str(stablehlo.lower(stablehlo.parse(path.read_text())))
    status, messages = _runner.check(path, output, monkeypatch)
    assert status == 0, f"{messages}\n{output}"
