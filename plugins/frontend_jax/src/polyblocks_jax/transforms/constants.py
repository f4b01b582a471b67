"""Arrays that a function captures: some are part of the program, some are passed to it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr

from polyblocks.frontends.weight_arguments import weight_arguments
from polyblocks_jax.compat import host_array
from polyblocks_jax.location import source_location
from polyblocks_jax.specs import memory_dtype, text_of

#: Bytes up to which a constant is part of the program; larger ones are passed to it.
INLINE_BYTES = 16 << 10
#: Bytes from which on a captured constant is worth a warning.
WARN_BYTES = 1 << 20


class CapturedConstantWarning(UserWarning):
    """A compiled function holds a large array that was no argument."""


def is_small(value: Any) -> bool:
    """Whether a constant is known now and small enough to be part of the program."""
    if isinstance(value, jax.core.Tracer):
        return False
    return _bytes_of(value) <= INLINE_BYTES


def _bytes_of(value: Any) -> int:
    return int(getattr(host_array(value), "nbytes", 0))


def is_traced(value: Any) -> bool:
    """Whether a constant is one of an outer function that is being traced."""
    return isinstance(value, jax.core.Tracer)


def passed_constants() -> Callable[[Any], bool]:
    """Which constants are passed to the program: large ones, and weights that are bound later.

    JAX copies some of the arrays that a function captures, so weights are known by their values.
    """
    weights = set(map(_content, weight_arguments())) - {None}
    return lambda value: not is_small(value) or (bool(weights) and _content(value) in weights)


def _content(value: Any) -> tuple[Any, ...] | None:
    """Shape, dtype (as JAX has it) and bytes of a small array; None for anything else."""
    value = host_array(value)
    if not isinstance(value, (jax.Array, np.ndarray)) or not is_small(value):
        return None
    if jax.dtypes.issubdtype(value.dtype, jax.dtypes.extended):
        return None
    held = np.asarray(value, jax.dtypes.canonicalize_dtype(value.dtype))
    return held.shape, held.dtype, held.tobytes()


def lift_constants(
    closed: ClosedJaxpr, which: Callable[[Any], bool]
) -> tuple[ClosedJaxpr, list[Any]]:
    """Make some constants the first arguments.

    Args:
        closed: a function.
        which: :func:`is_traced` or :func:`passed_constants`.

    Returns:
        The function, and the values for its new first arguments.
    """
    jaxpr = closed.jaxpr
    pairs = list(zip(jaxpr.constvars, closed.consts, strict=True))
    lifted = [(var, value) for var, value in pairs if which(value)]
    kept = [(var, value) for var, value in pairs if not which(value)]
    if not lifted:
        return closed, []
    inputs = [*(var for var, _ in lifted), *jaxpr.invars]
    debug = jaxpr.debug_info._replace(arg_names=None)
    made = jaxpr.replace(constvars=[var for var, _ in kept], invars=inputs, debug_info=debug)
    return ClosedJaxpr(made, [value for _, value in kept]), [value for _, value in lifted]


def warn_of_copied(closed: ClosedJaxpr, copied: Sequence[Any], name: str) -> None:
    """Name the large ones of the captured arrays that XLA copies into its program.

    Args:
        closed: the function as it was traced.
        copied: values of its constants that are copied.
        name: the user's function.
    """
    found = [
        f"{text_of(var.aval)}{_used_at(closed.jaxpr.eqns, var)}"
        for var, value in zip(closed.jaxpr.constvars, closed.consts, strict=True)
        if _bytes_of(value) > WARN_BYTES and any(value is each for each in copied)
    ]
    if found:
        warnings.warn(
            f"{name} captures {', '.join(found)}: a constant of more than 1 MiB is copied into the "
            "compiled function here; pass it as an argument",
            CapturedConstantWarning,
            stacklevel=2,
        )


def _used_at(eqns: Sequence[Any], var: Any) -> str:
    for eqn in eqns:
        if any(operand is var for operand in eqn.invars):
            location = source_location(eqn)
            return f" (used at {location})" if location else ""
    return ""


def known_values(closed: ClosedJaxpr, constants: Sequence[Any]) -> dict[int, np.ndarray[Any, Any]]:
    """The constants that are its first inputs as they lie in memory, by their numbers.

    They stay as they are: arrays of NumPy, which may be written to, are copied.
    """
    found: dict[int, np.ndarray[Any, Any]] = {}
    values = map(host_array, constants)
    for number, (value, aval) in enumerate(zip(values, closed.in_avals, strict=False)):
        if isinstance(value, (jax.Array, np.ndarray)) and str(value.dtype) == memory_dtype(aval):
            fixed = value.copy() if isinstance(value, np.ndarray) else np.asarray(value)
            found[number] = np.ascontiguousarray(fixed).reshape(aval.shape)
    return found
