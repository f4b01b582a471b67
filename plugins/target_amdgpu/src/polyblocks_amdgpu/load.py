"""``load_artifact``: an artifact as a program on AMD's GPUs, or in the simulator."""

from __future__ import annotations

from typing import Any

from polyblocks.artifact import Artifact
from polyblocks.options import CompileOptions
from polyblocks.runtime.device import executable, program
from polyblocks.runtime.device.code import is_simulated
from polyblocks_amdgpu import driver


def load_artifact(artifact: Artifact) -> Any:
    """The program; no device is touched before its first launch.

    Raises:
        ArtifactError: it has no launch plan, or no code.
    """
    if is_simulated(artifact):
        return _simulated(artifact)
    return executable.DeviceExecutable(artifact, driver.connect)


def _simulated(artifact: Artifact) -> Any:
    from polyblocks.simulated import SimulatedExecutable
    from polyblocks_amdgpu.describe import describe
    from polyblocks_amdgpu.simt import SEMANTICS

    options = CompileOptions(target="amdgpu", arch=artifact.manifest["arch"])
    return SimulatedExecutable(artifact, SEMANTICS, describe(options))


def synchronize() -> None:
    """Wait until all work on all devices that were used is done.

    Raises:
        ExecutionError: a run-time check of a program has failed.
    """
    if (connected := driver.connected()) is not None:
        program.synchronize(connected)
