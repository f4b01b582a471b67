"""Programs as libraries for C, through their target."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from polyblocks.artifact import Artifact
from polyblocks.errors import TargetError
from polyblocks.registry.registry import get_registry


def write_library(
    artifact: Artifact, folder: str | os.PathLike[str], name: str | None = None
) -> Sequence[Path]:
    """Write a program as a shared object for C and C++, with its header and a file for CMake.

    Args:
        artifact: a program, perhaps for several architectures: the library chooses when it is
            called.
        folder: where the files go; made if it is not there.
        name: of the function and the files; default: the program's.

    Returns:
        The files.

    Raises:
        TargetError: the artifact's target makes no libraries, or a C compiler is missing or fails.
        InputError: this program cannot be a library.

    Example::

        polyblocks.write_library(polyblocks.aot(model.eval(), [x]), "library", "model")
    """
    target = artifact.manifest["target"]
    hook = get_registry().target(target).hook
    name = name or artifact.manifest["name"]
    written: Sequence[Path] = hook.emit_library(artifact=artifact, name=name, folder=Path(folder))
    if not written:
        raise TargetError(
            f"target '{target}' makes no libraries for C; compile for another one, or write the "
            "artifact and load it with polyblocks.load"
        )
    return written
