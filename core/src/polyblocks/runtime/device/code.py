"""Which of an artifact's blobs a device runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polyblocks.artifact import Artifact
from polyblocks.cache.artifact_variants import archs_of, variant
from polyblocks.errors import ArtifactError, TargetError
from polyblocks.runtime.device.plan import LaunchPlan, read_plan

if TYPE_CHECKING:
    from polyblocks.runtime.device.driver import Driver

_PREFIX = "kernels."

#: The form of code that the simulator runs: LLVM IR, right before it becomes machine code.
SIMULATED = "ll"


def code_name(arch: str, form: str) -> str:
    """The name of the blob with the code for an architecture in one form."""
    return f"{_PREFIX}{arch}.{form}"


def code_of(artifact: Artifact) -> dict[tuple[str, str], bytes]:
    """The code in an artifact by architecture and form.

    Raises:
        ArtifactError: it holds no code.
    """
    found = {}
    for name, data in artifact.blobs.items():
        arch, dot, form = name.removeprefix(_PREFIX).rpartition(".")
        if name.startswith(_PREFIX) and dot and arch:
            found[arch, form] = data
    if not found:
        target = artifact.manifest.get("target", "?")
        there = ", ".join(sorted(artifact.blobs)) or "no blobs"
        raise ArtifactError(
            f"an artifact of target '{target}' has code in blobs called "
            f"'{code_name('ARCH', 'FORM')}'; this one has {there}"
        )
    return found


def is_simulated(artifact: Artifact) -> bool:
    """Whether an artifact was built with the option ``simulate``."""
    return any(name.endswith(f".{SIMULATED}") for name in artifact.blobs)


def choose(artifact: Artifact, driver: Driver, device: int) -> tuple[LaunchPlan, bytes]:
    """The plan and the code that fit a device best.

    Raises:
        TargetError: none fits; says what there is, what the device is, and what to do.
    """
    if not artifact.manifest.get("launches"):
        return read_plan(artifact.manifest), b""
    code = code_of(artifact)
    ranked = []
    for (arch, form), data in sorted(code.items()):
        rank = driver.rank(arch, form, device)
        if rank is not None and arch in archs_of(artifact):
            ranked.append((rank, arch, data))
    if not ranked:
        there = ", ".join(sorted({arch for arch, _ in code}))
        raise TargetError(
            f"{artifact.manifest.get('name', 'the program')} has code for {there}; device {device} "
            f"is {driver.device_name(device)}; compile it with the option 'arch' for that"
        )
    _, arch, data = min(ranked, key=lambda each: each[0])
    return read_plan(variant(artifact, arch).manifest), data
