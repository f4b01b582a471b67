"""``load_artifact`` and ``synchronize`` of targets with devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from polyblocks.artifact import Artifact
from polyblocks.runtime.device.code import is_simulated
from polyblocks.runtime.device.executable import DeviceExecutable
from polyblocks.runtime.device.program import synchronize

if TYPE_CHECKING:
    from polyblocks.runtime.device.driver import Driver
    from polyblocks.simt import Semantics


def load_program(
    artifact: Artifact, connect: Callable[[], Driver], semantics: Callable[[], Semantics]
) -> Any:
    """The program of an artifact: for the target's devices, or in the simulator.

    Args:
        artifact: of the target.
        connect: gives the target's driver; called at the first launch.
        semantics: gives what the target's ops mean to the simulator; called if it is needed.

    Raises:
        ArtifactError: there is no launch plan, a wrong one, or no code.
    """
    if is_simulated(artifact):
        from polyblocks.simt.simulated import load_simulated

        return load_simulated(artifact, semantics())
    return DeviceExecutable(artifact, connect)


def synchronize_used(driver: Driver | None) -> None:
    """Wait for all work on the devices of a driver; None: of one that was not used.

    Raises:
        ExecutionError: a run-time check of a program has failed.
    """
    if driver is not None:
        synchronize(driver)
