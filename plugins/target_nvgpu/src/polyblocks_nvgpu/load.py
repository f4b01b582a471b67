"""``load_artifact``: an artifact as a program on NVIDIA's GPUs, or in the simulator."""

from __future__ import annotations

from typing import Any

from polyblocks.artifact import Artifact
from polyblocks.runtime.device.executable import DeviceExecutable
from polyblocks.runtime.device.program import synchronize as synchronize_driver
from polyblocks_nvgpu import driver


def load_artifact(artifact: Artifact) -> Any:
    """The program; no device is touched before its first launch.

    Raises:
        ArtifactError: it has no launch plan, or no code.
    """
    if artifact.manifest.get("simulated"):
        from polyblocks_nvgpu.simulation import load_simulated

        return load_simulated(artifact)
    return DeviceExecutable(artifact, driver.connect)


def synchronize() -> None:
    """Wait until all work on all devices that were used is done.

    Raises:
        ExecutionError: a run-time check of a program has failed.
    """
    connected = driver.connected()
    if connected is not None:
        synchronize_driver(connected)
