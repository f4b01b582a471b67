"""The hooks of the target ``cpu``. Imports nothing heavy; what a hook needs, it imports."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyblocks.hookspecs import hookimpl

if TYPE_CHECKING:
    from polyblocks.artifact import Artifact
    from polyblocks.options import CompileOptions
    from polyblocks.runtime.executable import Executable
    from polyblocks.target import TargetDescription

POLYBLOCKS_API = 2
__version__ = "0.1.0"


@hookimpl
def describe_target(options: CompileOptions) -> TargetDescription:
    """The CPU named by ``options.arch``, by default this machine's."""
    from polyblocks_cpu.describe import describe

    return describe(options)


@hookimpl
def lower_program(module: Any, target: TargetDescription, options: CompileOptions) -> Artifact:
    """S4 and S5: OpenMP and LLVM, an object file."""
    from polyblocks_cpu.lower import lower_program as lower

    return lower(module, target, options)


@hookimpl
def choose_variant(artifact: Artifact) -> Artifact:
    """The part with code for this machine's chip."""
    from polyblocks_cpu.load import choose_variant as choose

    return choose(artifact)


@hookimpl
def load_artifact(artifact: Artifact) -> Executable:
    """Link the object file into this process."""
    from polyblocks_cpu.load import load_artifact as load

    return load(artifact)


@hookimpl
def emit_library(artifact: Artifact, name: str, folder: Path) -> Sequence[Path]:
    """Write a shared object for C, its header and a file for CMake."""
    from polyblocks_cpu.library.emit import emit_library as emit

    return emit(artifact, name, folder)


@hookimpl
def preload() -> tuple[str, ...]:
    """Modules that lowering imports."""
    return ("polyblocks_cpu.lower", "polyblocks.codegen.vector_math", "llvmlite.binding")
