"""Compiled functions that are called in another one, and so are compiled as a part of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from polyblocks.frontends.partition import FallbackOp, check_may_stay
from polyblocks_jax.compat import jaxprs_in_params

if TYPE_CHECKING:
    from polyblocks_jax.compiler import Site
    from polyblocks_jax.jaxprs.parts import Equations


def tell(equations: Equations, compiled: Iterable[int], site: Site) -> None:
    """Say in the reports of the functions that are part of another one that they are.

    Those inside a loop or a branch that JAX runs are not among them: each is lowered, compiled and
    reported by itself.

    Args:
        equations: of the outer function.
        compiled: numbers of those that are compiled.
        site: of the outer function.
    """
    inner = [each for sites in equations.sites for each in sites]
    inner += [each for node in compiled for each in _called_inside(equations.eqns[node])]
    for each in dict.fromkeys(inner):
        if each is not site:
            each.report.part_of(site.name)


def check_inner(equations: Equations, left: FallbackOp, location: str) -> None:
    """Check that JAX may run an operation, for all inner functions that it is part of.

    Args:
        equations: of the outer function.
        left: what is left to JAX.
        location: ``file:line`` of the user's source; empty if unknown.

    Raises:
        FallbackError: ``strict_target`` is set for one of them.
    """
    for inner in equations.sites[left.index]:
        check_may_stay(left, location, inner.options, "JAX", whose=inner.name)


def _called_inside(eqn: Any) -> Iterator[Site]:
    """Compiled functions that are called in the loops and branches that an equation is."""
    for jaxpr in jaxprs_in_params(eqn.params):
        for each in jaxpr.eqns:
            if each.primitive.name == "polyblocks_call":
                yield each.params["site"]
            yield from _called_inside(each)
