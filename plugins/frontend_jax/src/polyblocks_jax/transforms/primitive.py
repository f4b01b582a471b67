"""The primitive that stands for a compiled function in JAX's own programs.

It is a call of a jaxpr. Its lowering is in
:mod:`polyblocks_jax.transforms.lowering`, and its rules for JAX's transformations are in
:mod:`polyblocks_jax.transforms.transformations`.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, Primitive

from polyblocks_jax.compiler import Site
from polyblocks_jax.jaxprs.evaluate import evaluate
from polyblocks_jax.transforms.tracing import is_tracing

polyblocks_call_p = Primitive("polyblocks_call")
polyblocks_call_p.multiple_results = True

#: Pairs of the number of a result and that of the argument whose memory it takes over.
Updates = tuple[tuple[int, int], ...]


def call(
    closed: ClosedJaxpr, site: Site, args: Sequence[Any], donated: Collection[int] = ()
) -> list[Any]:
    """Call a traced function; it is compiled when JAX lowers the call.

    Args:
        closed: the function.
        site: see :class:`polyblocks_jax.compiler.Site`.
        args: what it is called with.
        donated: numbers of arguments whose memory results may take over.
    """
    updates = taken_over(closed, donated) if site.options.num_iters == 1 else ()
    return list(
        polyblocks_call_p.bind(*args, jaxpr=closed, site=site, kind="inference", updates=updates)
    )


def taken_over(closed: ClosedJaxpr, donated: Collection[int]) -> Updates:
    """Which results take over which arguments: in order, as ``jax.jit`` hands them out."""
    free = sorted(donated)
    pairs = []
    for number, aval in enumerate(closed.out_avals):
        for index in free:
            given = closed.in_avals[index]
            if aval.size and (given.shape, given.dtype) == (aval.shape, aval.dtype):
                pairs.append((number, index))
                free.remove(index)
                break
    return tuple(pairs)


@polyblocks_call_p.def_effectful_abstract_eval
def _abstract(*avals: Any, jaxpr: ClosedJaxpr, **params: Any) -> tuple[Any, Any]:
    del avals, params
    return jaxpr.out_avals, jaxpr.effects


@polyblocks_call_p.def_impl
def _run(*args: Any, jaxpr: ClosedJaxpr, site: Site, kind: str, updates: Updates) -> Any:
    """Outside of any trace: a jaxpr with the primitive is being evaluated step by step."""
    del updates  # The arguments belong to the caller that evaluates it.
    return _jitted(jaxpr, site, kind)(*args)


@functools.lru_cache(maxsize=256)
def _jitted(jaxpr: ClosedJaxpr, site: Site, kind: str) -> Any:
    def run(*args: Any) -> Any:
        if not is_tracing():
            return evaluate(jaxpr, *args)
        return polyblocks_call_p.bind(*args, jaxpr=jaxpr, site=site, kind=kind, updates=())

    return jax.jit(run)
