"""The same program gives the same artifact, whatever the process compiled before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from bench.generated import generate

from polyblocks import driver
from polyblocks.artifact import Artifact
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

pytestmark = pytest.mark.cpu


def test_artifacts_are_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    artifacts: list[Artifact] = []
    isolated = driver.isolated

    def kept(*arguments: Any) -> Artifact:
        artifacts.append(isolated(*arguments))
        return artifacts[-1]

    monkeypatch.setattr(driver, "isolated", kept)
    # In this process, whose counters go on: names and order must not depend on them.
    monkeypatch.setenv("POLYBLOCKS_ISOLATE", "0")
    program = generate(40, seed=3)
    for attempt in range(2):
        monkeypatch.setenv("POLYBLOCKS_CACHE_DIR", str(tmp_path / str(attempt)))
        torch._dynamo.reset()
        polyblocks_jit_torch(program.function)(*program.inputs)
    first, second = artifacts
    assert first.blobs == second.blobs
    for artifact in artifacts:
        # Times differ.
        artifact.manifest.pop("report")
    assert first.manifest == second.manifest
