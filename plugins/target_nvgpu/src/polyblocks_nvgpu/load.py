"""``load_artifact``: an artifact as a program on NVIDIA's GPUs, or in the simulator."""

from __future__ import annotations

from typing import Any

from polyblocks.artifact import Artifact
from polyblocks.options import CompileOptions
from polyblocks.runtime.device.executable import DeviceExecutable
from polyblocks.runtime.device.program import synchronize as synchronize_driver
from polyblocks.runtime.device.code import is_simulated
from polyblocks_nvgpu import driver


def load_artifact(artifact: Artifact) -> Any:
    """The program; no device is touched before its first launch.

    Raises:
        ArtifactError: it has no launch plan, or no code.
    """
    if is_simulated(artifact):
        return _simulated(artifact)
    return DeviceExecutable(artifact, driver.connect)


def _simulated(artifact: Artifact) -> Any:
    from polyblocks.simulated import SimulatedExecutable
    from polyblocks_nvgpu.describe import describe
    from polyblocks_nvgpu.simt import SEMANTICS

    options = CompileOptions(target="nvgpu", arch=artifact.manifest["arch"])
    return SimulatedExecutable(artifact, SEMANTICS, describe(options))


def synchronize() -> None:
    """Wait until all work on all devices that were used is done.

    Raises:
        ExecutionError: a run-time check of a program has failed.
    """
    connected = driver.connected()
    if connected is not None:
        synchronize_driver(connected)
