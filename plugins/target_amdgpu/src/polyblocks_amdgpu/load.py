"""``load_artifact``: an artifact as a program on AMD's GPUs, or in the simulator."""

from __future__ import annotations

from typing import Any

from polyblocks.artifact import Artifact
from polyblocks.runtime.device.loading import load_program
from polyblocks_amdgpu import driver


def load_artifact(artifact: Artifact) -> Any:
    """The program; no device is touched before its first launch."""
    return load_program(artifact, driver.connect, _semantics)


def _semantics() -> Any:
    from polyblocks_amdgpu.simt import SEMANTICS

    return SEMANTICS
