"""Arrays that a function captures: some are part of the program, some are passed to it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr

from polyblocks_jax.location import source_location
from polyblocks_jax.specs import text_of

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
    return int(getattr(value, "nbytes", 0)) <= INLINE_BYTES


def lift_constants(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Any]]:
    """Make the constants that are no part of the program its first arguments.

    Returns:
        The function, and the values for its new first arguments.
    """
    jaxpr = closed.jaxpr
    pairs = list(zip(jaxpr.constvars, closed.consts, strict=True))
    lifted = [(var, value) for var, value in pairs if not is_small(value)]
    kept = [(var, value) for var, value in pairs if is_small(value)]
    if not lifted:
        return closed, []
    inputs = [*(var for var, _ in lifted), *jaxpr.invars]
    debug = jaxpr.debug_info._replace(arg_names=None)
    made = jaxpr.replace(constvars=[var for var, _ in kept], invars=inputs, debug_info=debug)
    return ClosedJaxpr(made, [value for _, value in kept]), [value for _, value in lifted]


def warn_of_large(closed: ClosedJaxpr, name: str) -> None:
    """Name the captured arrays that had better be arguments."""
    found = [
        f"{text_of(var.aval)}{_used_at(closed.jaxpr.eqns, var)}"
        for var, value in zip(closed.jaxpr.constvars, closed.consts, strict=True)
        if not isinstance(value, jax.core.Tracer) and getattr(value, "nbytes", 0) > WARN_BYTES
    ]
    if found:
        warnings.warn(
            f"{name} captures {', '.join(found)}: a constant of more than 1 MiB is copied into the "
            "compiled function; pass it as an argument",
            CapturedConstantWarning,
            stacklevel=2,
        )


def _used_at(eqns: Sequence[Any], var: Any) -> str:
    for eqn in eqns:
        if any(operand is var for operand in eqn.invars):
            location = source_location(eqn)
            return f" (used at {location})" if location else ""
    return ""
