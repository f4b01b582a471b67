"""Loops over the tiles of matrix kernels stay loops until there is machine code."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import polyblocks

pytestmark = pytest.mark.usefixtures("compiled_in_this_process")


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.matmul(a, b)


@pytest.mark.parametrize(
    ("target", "arch", "loops"), [("nvgpu", "sm_80", 2), ("amdgpu", "gfx1100", 1)]
)
def test_loops_are_marked_to_the_end(
    target: str, arch: str, loops: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With asynchronous copies the tiles at the end, which start none, are a loop of their own.
    monkeypatch.setenv("POLYBLOCKS_CACHE_DIR", str(tmp_path / "cache"))
    pair = [torch.zeros(1024, 1024, dtype=torch.float16) for _ in range(2)]
    options = {"target": target, "arch": arch, "debug": str(tmp_path / "dumps")}
    polyblocks.aot(product, pair, options)
    (text,) = (tmp_path / "dumps").glob("*/S5-optimized.ll")
    lines = text.read_text().splitlines()
    branches = [line for line in lines if line.startswith("  br ") and "!llvm.loop" in line]
    assert len(branches) == loops
    assert any("llvm.loop.unroll.disable" in line for line in lines)
