"""JAX's transformations of a compiled function: each makes another function that is compiled.

A rule derives the function that JAX would run (its derivative, its batch, the part of it that is
known), and binds the primitive on that. JAX's own rules for the function's operations derive it, so
derivatives of every order are those of the function as it was written.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
from jax._src import checkify, core
from jax._src.interpreters import ad, batching
from jax._src.interpreters import partial_eval as pe
from jax.extend.core import ClosedJaxpr

from polyblocks_jax.compat import linearize_jaxpr, register_linearization
from polyblocks_jax.compiler import Site
from polyblocks_jax.jaxprs.pruning import prune
from polyblocks_jax.transforms.primitive import Updates, polyblocks_call_p

#: How a function was derived: ``kind`` in :class:`polyblocks.frontends.function_report.Variant`.
FORWARD = "forward"
BACKWARD = "backward"
TANGENTS = "tangents"
JVP = "jvp"
BATCHED = "batched"
CHECKED = "checked"


def bind(closed: ClosedJaxpr, site: Site, kind: str, args: Sequence[Any]) -> list[Any]:
    """Call a derived function.

    Args:
        closed: the function.
        site: of the function that it was derived from.
        kind: how it was derived.
        args: what it is called with.
    """
    needed, _ = pe.dce_jaxpr(closed.jaxpr, [True] * len(closed.out_avals), instantiate=True)
    pruned = prune(ClosedJaxpr(needed, closed.consts))
    computed: Sequence[Any] = ()
    if not pruned.is_trivial:
        read = [args[i] for i in pruned.used]
        computed = polyblocks_call_p.bind(
            *read, jaxpr=pruned.core, site=site, kind=kind, updates=()
        )
    return pruned.results(args, computed)


def _jvp(
    primals: Any, tangents: Any, *, jaxpr: ClosedJaxpr, site: Site, kind: str, updates: Updates
) -> tuple[Any, Any]:
    del kind, updates
    varies = [type(tangent) is not ad.Zero for tangent in tangents]
    made, varies_out = ad.jvp_jaxpr(jaxpr, varies, instantiate=False)
    results = bind(made, site, JVP, [*primals, *_where(varies, tangents)])
    count = len(varies_out)
    return results[:count], _tangents(results[count:], varies_out, jaxpr)


def _linearize(
    is_vjp: bool,
    varies: Sequence[bool],
    *primals: Any,
    jaxpr: ClosedJaxpr,
    site: Site,
    kind: str,
    updates: Updates,
) -> tuple[Any, Any, Any, Any]:
    del kind, updates
    primal, count, varies_out, forwarded, linear = linearize_jaxpr(jaxpr, varies, is_vjp)
    results = bind(primal, site, FORWARD, primals)
    outputs, made = results[: len(results) - count], iter(results[len(results) - count :])
    linear, forwarded = _capturing(linear, forwarded, jaxpr.consts)
    inputs = [*jaxpr.consts, *primals]
    kept = [next(made) if place is None else inputs[place] for place in forwarded]

    def linearized(kept: Sequence[Any], *tangents: Any) -> list[Any]:
        results = bind(linear, site, TANGENTS, [*kept, *_where(varies, tangents)])
        return _tangents(results, varies_out, jaxpr)

    return outputs, varies_out, kept, linearized


def _capturing(
    linear: ClosedJaxpr, forwarded: Sequence[int | None], consts: Sequence[Any]
) -> tuple[ClosedJaxpr, list[int | None]]:
    """A function's captures are its derivative's too: kept as values, each is a copy.

    Args:
        linear: the derivative, of what is kept for it and of tangents.
        forwarded: for each value that is kept, which constant or input it is, if any.
        consts: of the function.
    """
    captured = [i for i, place in enumerate(forwarded) if place is not None and place < len(consts)]
    if not captured:
        return linear, list(forwarded)
    inner = linear.jaxpr
    made = inner.replace(
        constvars=[*inner.constvars, *(inner.invars[i] for i in captured)],
        invars=[var for i, var in enumerate(inner.invars) if i not in captured],
        debug_info=inner.debug_info._replace(arg_names=None),
    )
    values = [consts[place] for place in forwarded if place is not None and place < len(consts)]
    rest = [place for i, place in enumerate(forwarded) if i not in captured]
    return ClosedJaxpr(made, [*linear.consts, *values]), rest


def _where(chosen: Sequence[bool], values: Sequence[Any]) -> list[Any]:
    return [value for value, is_chosen in zip(values, chosen, strict=True) if is_chosen]


def _tangents(made: Sequence[Any], varies: Sequence[bool], jaxpr: ClosedJaxpr) -> list[Any]:
    """One tangent per result of a function: those that were made, and symbolic zeros."""
    values = iter(made)
    return [
        next(values) if varies_here else ad.Zero(aval.to_tangent_aval())
        for varies_here, aval in zip(varies, jaxpr.out_avals, strict=True)
    ]


def _transpose(
    cotangents: Any, *args: Any, jaxpr: ClosedJaxpr, site: Site, kind: str, updates: Updates
) -> list[Any]:
    del kind, updates
    is_linear = [ad.is_undefined_primal(arg) for arg in args]
    varies = [type(cotangent) is not ad.Zero for cotangent in cotangents]
    varies_out: list[bool] = []

    def pulled(known: Sequence[Any], given: Sequence[Any]) -> list[Any]:
        values, present = iter(known), iter(given)
        operands = [
            arg if linear else next(values) for arg, linear in zip(args, is_linear, strict=True)
        ]
        wanted = [next(present) if v else c for c, v in zip(cotangents, varies, strict=True)]
        made = ad.backward_pass(jaxpr.jaxpr, False, jaxpr.consts, operands, wanted)
        made = _where(is_linear, made)
        varies_out[:] = [type(cotangent) is not ad.Zero for cotangent in made]
        return _where(varies_out, made)

    known = [arg for arg, linear in zip(args, is_linear, strict=True) if not linear]
    given = _where(varies, cotangents)
    closed = jax.make_jaxpr(pulled)(known, given)
    results = iter(bind(closed, site, BACKWARD, [*known, *given]))
    chosen = iter(varies_out)
    return [
        None if not linear else next(results) if next(chosen) else ad.Zero(arg.aval)
        for arg, linear in zip(args, is_linear, strict=True)
    ]


def _batch(
    axis: Any, args: Any, dims: Any, *, jaxpr: ClosedJaxpr, site: Site, kind: str, updates: Updates
) -> tuple[Any, Any]:
    del updates
    made, dims_out = batching.batch_jaxpr2(jaxpr, axis, tuple(dims))
    return bind(made, site, BATCHED if kind == "inference" else kind, args), dims_out


def _check(
    error: Any,
    enabled: Any,
    *args: Any,
    jaxpr: ClosedJaxpr,
    site: Site,
    kind: str,
    updates: Updates,
) -> tuple[Any, Any]:
    """For ``checkify``: errors are further arguments and results."""
    del kind, updates
    errors, tree = jax.tree.flatten(error)
    values = [*errors, *args]
    avals = [jax.typeof(value) for value in values]
    made, tree_out, _ = checkify.jaxpr_to_checkify_jaxpr(jaxpr, enabled, tree, *avals)
    checked, results = jax.tree.unflatten(tree_out, bind(made, site, CHECKED, values))
    return checked, results


def _partial_eval(
    trace: Any, *tracers: Any, jaxpr: ClosedJaxpr, site: Site, kind: str, updates: Updates
) -> list[Any]:
    """Compute what depends on known arguments alone; the rest is a call that is left to be made."""
    del updates
    is_unknown = [not tracer.is_known() for tracer in tracers]
    known, unknown, is_unknown_out, _ = pe.partial_eval_jaxpr_nounits(jaxpr, is_unknown, False)
    values = [tracer.pval.get_known() for tracer in tracers if tracer.is_known()]
    with core.set_current_trace(trace.parent_trace):
        results = bind(known, site, FORWARD, values)
    count = len(is_unknown_out) - sum(is_unknown_out)
    kept = [trace.new_instantiated_const(value) for value in results[count:]]
    kind = TANGENTS if kind == JVP else kind
    staged = trace.default_process_primitive(
        polyblocks_call_p,
        [*kept, *_where(is_unknown, tracers)],
        {"jaxpr": unknown, "site": site, "kind": kind, "updates": ()},
    )
    known_results, staged_results = iter(results), iter(staged)
    return [next(staged_results) if u else next(known_results) for u in is_unknown_out]


def _without_updates(*args: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters of both halves of a function that is saved in part (``jax.checkpoint``)."""
    *_, known, staged = args
    return known | {"updates": (), "kind": FORWARD}, staged | {"updates": ()}


def _eliminate(used: list[bool], eqn: Any) -> tuple[list[bool], Any]:
    """The call without the results that are not used, and what only they need."""
    if not any(used) and not eqn.effects:
        return [False] * len(eqn.invars), None
    if all(used):
        return [True] * len(eqn.invars), eqn
    closed = eqn.params["jaxpr"]
    jaxpr, used_inputs = pe.dce_jaxpr(closed.jaxpr, list(used))
    results, inputs = _renumbered(used), _renumbered(used_inputs)
    updates = tuple(
        (results[result], inputs[index])
        for result, index in eqn.params["updates"]
        if result in results and index in inputs
    )
    params = eqn.params | {"jaxpr": ClosedJaxpr(jaxpr, closed.consts), "updates": updates}
    made = eqn.replace(
        invars=_where(used_inputs, eqn.invars),
        outvars=_where(used, eqn.outvars),
        params=params,
        effects=jaxpr.effects,
    )
    return used_inputs, made


def _renumbered(used: Sequence[bool]) -> dict[int, int]:
    return {old: new for new, old in enumerate(i for i, is_used in enumerate(used) if is_used)}


ad.primitive_jvps[polyblocks_call_p] = _jvp
register_linearization(polyblocks_call_p, _linearize)
ad.primitive_transposes[polyblocks_call_p] = _transpose
batching.fancy_primitive_batchers[polyblocks_call_p] = _batch
pe.custom_partial_eval_rules[polyblocks_call_p] = _partial_eval
pe.partial_eval_jaxpr_custom_rules[polyblocks_call_p] = functools.partial(
    pe.closed_call_partial_eval_custom_rule, "jaxpr", _without_updates
)
pe.dce_rules[polyblocks_call_p] = _eliminate
checkify.error_checks[polyblocks_call_p] = _check
