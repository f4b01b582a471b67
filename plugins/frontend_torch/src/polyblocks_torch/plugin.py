"""The frontend's hooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from polyblocks.hookspecs import hookimpl
from polyblocks.program import Program

POLYBLOCKS_API = 2


@hookimpl
def fingerprint(capture: Any) -> bytes:
    """Identify a captured graph; loads no MLIR."""
    from polyblocks_torch.fingerprint import digest

    return digest(capture)


@hookimpl
def import_program(capture: Any) -> Program:
    """Decompose a captured graph and lower it to linalg on tensors."""
    from polyblocks_torch.importing.importer import import_capture

    return import_capture(capture)


@hookimpl
def array_interface() -> Any:
    """How tensors are read and made."""
    from polyblocks_torch.launch.arrays import TorchArrays

    return TorchArrays()


@hookimpl
def jit(function: Callable[..., Any], compile_options: Mapping[str, Any] | None) -> Any:
    """Compile a function or module: what ``polyblocks.compile`` calls."""
    from polyblocks_torch.api import polyblocks_jit_torch

    return polyblocks_jit_torch(function, compile_options=compile_options)


@hookimpl
def exported(function: Any) -> Any:
    """Open what ``torch.export`` made."""
    from polyblocks_torch.exported import open_exported

    return open_exported(function)


@hookimpl
def frontend_options() -> tuple[str, ...]:
    """Options of the frontend's own."""
    return ("freeze_weights",)


@hookimpl
def framework() -> str:
    """Import name of the framework."""
    return "torch"
