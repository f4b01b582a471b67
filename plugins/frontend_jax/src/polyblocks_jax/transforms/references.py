"""Functions with mutable references (``jax.Ref``), which JAX runs itself.

JAX turns references into values when it lowers a whole function; a function cannot be partitioned
before that.
"""

from __future__ import annotations

from typing import Any

from polyblocks.errors import FallbackError
from polyblocks.frontends.function_report import Variant
from polyblocks.frontends.partition import UNSUPPORTED
from polyblocks_jax.compat import jaxprs_in_params
from polyblocks_jax.compiler import Site
from polyblocks_jax.location import source_location

_REASON = "it works on a mutable reference (jax.Ref)"


def first_reference(jaxpr: Any) -> Any | None:
    """The first equation that reads, writes or makes a reference, also inside of others."""
    for eqn in jaxpr.eqns:
        for var in (*eqn.invars, *eqn.outvars):
            if type(var.aval).__name__ == "AbstractRef":
                return eqn
        for inner in jaxprs_in_params(eqn.params):
            if first_reference(inner) is not None:
                return eqn
    return None


def leave(eqn: Any, site: Site) -> None:
    """Report that JAX runs a function because of an equation.

    Raises:
        FallbackError: with ``strict_target``.
    """
    row = {
        "op": eqn.primitive.name,
        "reason": _REASON,
        "cause": UNSUPPORTED,
        "location": source_location(eqn),
    }
    if site.options.strict_target:
        raise FallbackError(
            f"{_REASON}; strict_target forbids that JAX runs it",
            op=row["op"],
            location=row["location"] or None,
        )
    site.report.left_to_framework(row)
    site.report.add_variant(Variant(site.name, outcome="framework"))
