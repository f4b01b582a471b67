"""A jaxpr as a flat list of equations: calls that only group others are opened.

``jnp`` functions are jitted ones, so a jaxpr is a tree of calls. Fallbacks are decided by
operation, and a call is not one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jax.extend.core import ClosedJaxpr, JaxprEqn, Literal, Var

from polyblocks_jax.compat import FIRST_CALL_PLACES, DropVar
from polyblocks_jax.location import is_library, source_location

#: Primitive -> the parameter with the function that it calls, where it means just that function.
_CALLS = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "checkpoint": "jaxpr",
    "remat2": "jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "custom_vjp_call_jaxpr": "fun_jaxpr",
    "polyblocks_call": "jaxpr",
}


@dataclass(frozen=True)
class Flat:
    """A function with no call among its equations that can be opened.

    Attributes:
        closed: the function. It can only be called, and not be differentiated any more: rules for
            derivatives are lost.
        sites: for each equation the compiled functions whose calls were opened around it, the
            outer ones first; see :class:`polyblocks_jax.compiler.Site`.
    """

    closed: ClosedJaxpr
    sites: Sequence[tuple[Any, ...]]


def flatten(closed: ClosedJaxpr) -> Flat:
    """Open the calls in a function."""
    jaxpr = closed.jaxpr
    writer = _Writer()
    consts = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    names: dict[Any, Any] = {var: var for var in (*jaxpr.invars, *jaxpr.constvars)}
    writer.inline(jaxpr, names)
    outvars = [names[v] if isinstance(v, Var) else v for v in jaxpr.outvars]
    constvars = [*consts, *writer.consts]
    flat = jaxpr.replace(eqns=writer.eqns, outvars=outvars, constvars=constvars)
    return Flat(ClosedJaxpr(flat, [*consts.values(), *writer.consts.values()]), writer.sites)


class _Writer:
    def __init__(self) -> None:
        self.eqns: list[JaxprEqn] = []
        self.sites: list[tuple[Any, ...]] = []
        self.consts: dict[Any, Any] = {}

    def inline(
        self,
        jaxpr: Any,
        names: dict[Any, Any],
        caller: Any = None,
        sites: tuple[Any, ...] = (),
    ) -> None:
        """Append the equations of a jaxpr whose inputs have the names given; adds its results.

        Operations of a library get the place in the user's source where the library was called.
        """
        misplaced = FIRST_CALL_PLACES and is_library(jaxpr)
        for eqn in jaxpr.eqns:
            if caller is not None and (misplaced or not source_location(eqn)):
                eqn = eqn.replace(source_info=caller.source_info)
            inputs = [v if isinstance(v, Literal) else names[v] for v in eqn.invars]
            called = _called(eqn)
            if called is None:
                outputs = [DropVar(v.aval) if _dropped(v) else Var(v.aval) for v in eqn.outvars]
                for old, new in zip(eqn.outvars, outputs, strict=True):
                    names[old] = new
                self.eqns.append(eqn.replace(invars=inputs, outvars=outputs))
                self.sites.append(sites)
                continue
            inner = dict(zip(called.jaxpr.invars, inputs, strict=True))
            for var, value in zip(called.jaxpr.constvars, called.consts, strict=True):
                inner[var] = Var(var.aval)
                self.consts[inner[var]] = value
            opened = (eqn.params["site"],) if eqn.primitive.name == "polyblocks_call" else ()
            self.inline(called.jaxpr, inner, eqn, (*sites, *opened))
            for old, new in zip(eqn.outvars, called.jaxpr.outvars, strict=True):
                names[old] = new if isinstance(new, Literal) else inner[new]


def _dropped(var: Any) -> bool:
    return isinstance(var, DropVar)


def _called(eqn: Any) -> ClosedJaxpr | None:
    """The function that an equation calls, if that is all that it does."""
    parameter = _CALLS.get(eqn.primitive.name)
    if parameter is None:
        return None
    called = eqn.params[parameter]
    if not isinstance(called, ClosedJaxpr):
        called = ClosedJaxpr(called, ())
    return called if len(called.jaxpr.invars) == len(eqn.invars) else None
