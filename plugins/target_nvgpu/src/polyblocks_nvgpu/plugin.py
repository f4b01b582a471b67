"""The hooks of the target ``nvgpu``. Imports nothing heavy; what a hook needs, it imports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polyblocks.hookspecs import hookimpl

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from polyblocks.artifact import Artifact
    from polyblocks.options import CompileOptions
    from polyblocks.runtime.executable import Executable
    from polyblocks.target import TargetDescription

POLYBLOCKS_API = 2
__version__ = "0.1.0"


@hookimpl
def describe_target(options: CompileOptions) -> TargetDescription:
    """The GPU named by ``options.arch``, by default the one that is present."""
    from polyblocks_nvgpu.describe import describe

    return describe(options)


@hookimpl
def lower_program(module: Any, target: TargetDescription, options: CompileOptions) -> Artifact:
    """S4 and S5: PTX, and machine code where the assembler is found."""
    from polyblocks_nvgpu.lower import lower_program as lower

    return lower(module, target, options)


@hookimpl
def load_artifact(artifact: Artifact) -> Executable:
    """Load the code on the device, or in the simulator."""
    from polyblocks_nvgpu.load import load_artifact as load

    return load(artifact)


@hookimpl
def emit_library(artifact: Artifact, name: str, folder: Path) -> Sequence[Path]:
    """A shared object that calls the driver by itself, a header, and what CMake needs."""
    from polyblocks.c_library.device.emit import emit_library as emit
    from polyblocks_nvgpu.library import VENDOR

    return emit(artifact, name, folder, VENDOR)


@hookimpl
def tools() -> dict[str, str]:
    """The assembler: with another one, or with none, other code is made."""
    from polyblocks.codegen.gpu.external_tool import identity
    from polyblocks_nvgpu import ptxas

    return {"ptxas": identity(ptxas.find())}


@hookimpl
def synchronize() -> None:
    """Wait for all work on the devices; see ``polyblocks.device_helpers``."""
    from polyblocks.runtime.device.loading import synchronize_used
    from polyblocks_nvgpu.driver import connected

    synchronize_used(connected())


@hookimpl
def preload() -> tuple[str, ...]:
    """Modules that lowering imports."""
    from polyblocks import mlir
    from polyblocks.codegen.gpu.preloaded import MODULES

    for name in ("gpu", "nvvm"):
        mlir.dialect(name)
    return (
        "polyblocks_nvgpu.lower",
        "polyblocks.codegen.vector_math",
        "llvmlite.binding",
        *MODULES,
    )


@hookimpl
def device_kinds() -> tuple[int, ...]:
    """``DLDeviceType`` of the arrays that programs take where they are."""
    return (2, 13)
