"""The frontend's hooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from polyblocks.hookspecs import hookimpl
from polyblocks.program import Program

POLYBLOCKS_API = 2


@hookimpl
def fingerprint(capture: Any) -> bytes:
    """Identify a traced function; loads no MLIR."""
    from polyblocks_tf.fingerprint import digest

    return digest(capture)


@hookimpl
def import_program(capture: Any) -> Program:
    """Lower the StableHLO of a traced function to linalg on tensors."""
    from polyblocks_tf.importer import import_capture

    return import_capture(capture)


@hookimpl
def array_interface() -> Any:
    """How tensors are read and made."""
    from polyblocks_tf.launch.arrays import TfArrays

    return TfArrays()


@hookimpl
def jit(function: Callable[..., Any], compile_options: Mapping[str, Any] | None) -> Any:
    """Compile a function or model: what ``polyblocks.compile`` calls."""
    from polyblocks_tf.api import polyblocks_jit_tf

    return polyblocks_jit_tf(function, compile_options=compile_options)


@hookimpl
def exported(function: Any) -> Any:
    """Read what functions and models say of their inputs."""
    from polyblocks_tf.exported import open_exported

    return open_exported(function)


@hookimpl
def framework() -> str:
    """Import name of the framework."""
    return "tensorflow"
