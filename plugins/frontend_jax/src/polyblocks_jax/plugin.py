"""The frontend's hooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from polyblocks.hookspecs import hookimpl
from polyblocks.program import Program

POLYBLOCKS_API = 2


@hookimpl
def fingerprint(capture: Any) -> bytes:
    """Identify a captured function; loads no MLIR but JAX's own."""
    return bytes(capture.digest)


@hookimpl
def import_program(capture: Any) -> Program:
    """Lower a captured function's StableHLO to linalg on tensors."""
    from polyblocks_jax.importer import import_capture

    return import_capture(capture)


@hookimpl
def array_interface() -> Any:
    """How arrays are read and made."""
    from polyblocks_jax.launch.arrays import JaxArrays

    return JaxArrays()


@hookimpl
def jit(function: Callable[..., Any], compile_options: Mapping[str, Any] | None) -> Any:
    """Compile a function: what ``polyblocks.compile`` calls."""
    from polyblocks_jax.api import polyblocks_jit_jax

    return polyblocks_jit_jax(function, compile_options=compile_options)


@hookimpl
def exported(function: Any) -> Any:
    """Open what ``jax.export`` made."""
    from polyblocks_jax.exported import open_exported

    return open_exported(function)


@hookimpl
def framework() -> str:
    """Import name of the framework."""
    return "jax"


@hookimpl
def frontend_options() -> tuple[str, ...]:
    """Options of frontends that are honoured."""
    return ("static_argnums", "static_argnames")
