"""The GPU that is there, and which of a program's codes it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from polyblocks import driver
from polyblocks.artifact import Artifact
from polyblocks.cache.artifact_variants import archs_of, variant
from polyblocks.runtime.device.code import code_of

Json = dict[str, Any]


def chosen(program: Path) -> tuple[str, Json]:
    """The architecture whose code the GPU takes, and the program's manifest for it.

    Args:
        program: its file.

    Raises:
        TargetError: there is no device, or none of the codes is for it.
    """
    artifact = Artifact.read(program)
    executable: Any = driver.load(artifact)
    device = executable.driver.current_device()
    executable.program(device)  # says what is wrong, if no code fits
    ranked = [
        (rank, arch)
        for arch, form in code_of(artifact)
        if arch in archs_of(artifact)
        and (rank := executable.driver.rank(arch, form, device)) is not None
    ]
    _, arch = min(ranked)
    return arch, variant(artifact, arch).manifest
