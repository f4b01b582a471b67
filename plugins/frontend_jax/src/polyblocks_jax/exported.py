"""Programs that ``jax.export`` made, as functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.export import Exported

from polyblocks.errors import InputError


def open_exported(function: Any) -> tuple[Callable[..., Any], Sequence[Any] | None]:
    """A function that calls an exported program, and descriptions of its arguments."""
    if not isinstance(function, Exported):
        return function, None
    shapes = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in function.in_avals]
    args, kwargs = jax.tree_util.tree_unflatten(function.in_tree, shapes)
    if kwargs:
        raise InputError(
            f"{function.fun_name} was exported with arguments that have names "
            f"({', '.join(kwargs)}); export it with positional ones"
        )

    def call(*given: Any) -> Any:
        return function.call(*given)

    call.__name__ = call.__qualname__ = function.fun_name
    return call, args
