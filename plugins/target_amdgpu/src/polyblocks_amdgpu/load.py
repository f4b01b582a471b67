"""``load_artifact``: an artifact as a program on AMD's GPUs, or in the simulator."""

from __future__ import annotations

from typing import Any

from polyblocks.artifact import Artifact
from polyblocks.runtime.device import executable, program
from polyblocks_amdgpu import driver


def load_artifact(artifact: Artifact) -> Any:
    """The program; no device is touched before its first launch.

    Raises:
        ArtifactError: it has no launch plan, or no code.
    """
    if artifact.manifest.get("simulated"):
        from polyblocks_amdgpu.simulation import load_simulated

        return load_simulated(artifact)
    return executable.DeviceExecutable(artifact, driver.connect)


def synchronize() -> None:
    """Wait until all work on all devices that were used is done.

    Raises:
        ExecutionError: a run-time check of a program has failed.
    """
    if (connected := driver.connected()) is not None:
        program.synchronize(connected)
