"""What a compilation needs is loaded before the fork: a child's imports are lost with it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from polyblocks import driver
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

pytestmark = [pytest.mark.cpu, pytest.mark.isolated]


def test_a_child_imports_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    report = tmp_path / "modules"
    # The verifier is the tests' own.
    monkeypatch.setenv("POLYBLOCKS_VERIFY", "0")
    run_isolated = driver.run_isolated

    def watched(job: Callable[[], bytes], **keywords: Any) -> bytes:
        def watched_job() -> bytes:
            before = set(sys.modules)
            result = job()
            report.write_text(" ".join(sorted(set(sys.modules) - before)))
            return result

        return run_isolated(watched_job, **keywords)

    monkeypatch.setattr(driver, "run_isolated", watched)

    @polyblocks_jit_torch
    def program(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x.cumsum(0)[:, 1:].sort(dim=0)[0] @ w, -1)

    program(torch.ones(5, 3), torch.ones(2, 4))
    assert report.read_text() == ""
