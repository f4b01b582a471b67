"""The results of a jaxpr that need computing: no arguments, constants or duplicates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jax.extend.core import ClosedJaxpr, Literal


@dataclass(frozen=True, eq=False)
class Pruned:
    """A function without what needs no computing.

    Attributes:
        core: what is left of it: each result is computed, and no two are the same.
        used: numbers of the arguments that it reads, those of the core.
    """

    core: ClosedJaxpr
    used: tuple[int, ...]
    _whole: ClosedJaxpr

    @property
    def is_trivial(self) -> bool:
        """Whether nothing is left."""
        return not self.core.jaxpr.outvars and not self.core.effects

    def results(self, args: Sequence[Any], computed: Sequence[Any]) -> list[Any]:
        """The results of the whole function.

        Args:
            args: of the whole function.
            computed: results of the core.
        """
        jaxpr = self._whole.jaxpr
        known = dict(zip(jaxpr.invars, args, strict=True))
        known.update(zip(jaxpr.constvars, self._whole.consts, strict=True))
        known.update(zip(self.core.jaxpr.outvars, computed, strict=True))
        return [v.val if isinstance(v, Literal) else known[v] for v in jaxpr.outvars]


def prune(closed: ClosedJaxpr, names: Sequence[str] | None = None) -> Pruned:
    """Leave out of a function what needs no computing.

    Args:
        closed: the function.
        names: of its arguments; None if unknown.
    """
    jaxpr = closed.jaxpr
    given = {*jaxpr.invars, *jaxpr.constvars}
    computed = list(
        dict.fromkeys(v for v in jaxpr.outvars if not isinstance(v, Literal) and v not in given)
    )
    read = {v for eqn in jaxpr.eqns for v in eqn.invars if not isinstance(v, Literal)}
    used = tuple(i for i, v in enumerate(jaxpr.invars) if v in read)
    debug = jaxpr.debug_info._replace(
        arg_names=None if names is None else tuple(names[i] for i in used), result_paths=None
    )
    core = jaxpr.replace(invars=[jaxpr.invars[i] for i in used], outvars=computed, debug_info=debug)
    return Pruned(ClosedJaxpr(core, closed.consts), used, closed)
