"""The function that ``jax.jit`` traces: it traces the user's, and calls the primitive on that."""

from __future__ import annotations

import functools
import inspect
import keyword
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, Literal

from polyblocks.frontends.function_report import Variant
from polyblocks_jax.arguments import Constant, opened
from polyblocks_jax.compiler import Site
from polyblocks_jax.jaxprs.evaluate import evaluate
from polyblocks_jax.jaxprs.pruning import prune
from polyblocks_jax.launch.forked import check_can_compile
from polyblocks_jax.location import current_location
from polyblocks_jax.specs import text_of
from polyblocks_jax.transforms import experimental, lowering, transformations  # noqa: F401 # rules
from polyblocks_jax.transforms.constants import is_traced, lift_constants
from polyblocks_jax.transforms.donation import NOTHING, Donation
from polyblocks_jax.transforms.primitive import call
from polyblocks_jax.transforms.references import first_reference, leave
from polyblocks_jax.transforms.tracing import is_tracing


def traced(
    function: Callable[..., Any], site: Site, donation: Donation = NOTHING
) -> Callable[..., Any]:
    """``function``, in which everything that is computed is one call of the primitive.

    Args:
        function: the user's.
        site: see :class:`polyblocks_jax.compiler.Site`.
        donation: which arguments are given up.
    """

    def run(*args: Any, **kwargs: Any) -> Any:
        if not is_tracing():
            if jax.config.jax_disable_jit:  # type: ignore[attr-defined] # made at run time
                # Asked for, so no error with strict_target either.
                site.report.not_compiled(
                    "jax.disable_jit", "JAX runs every operation by itself", current_location()
                )
            paths, tree = _flattened(args, kwargs)
            args, kwargs = jax.tree.unflatten(tree, [opened(leaf) for _, leaf in paths])
            return function(*args, **kwargs)
        check_can_compile(site.name)
        paths, tree = _flattened(args, kwargs)
        leaves = [opened(leaf) for _, leaf in paths]
        # Leaves that are no tracers here are static.
        dynamic = [i for i, leaf in enumerate(leaves) if isinstance(leaf, jax.core.Tracer)]

        def flat(*values: Any) -> Any:
            full = list(leaves)
            for i, value in zip(dynamic, values, strict=True):
                full[i] = value
            given, named = jax.tree.unflatten(tree, full)
            return function(*given, **named)

        names = _names(function, [paths[i][0] for i in dynamic])
        inputs = [leaves[i] for i in dynamic]
        presented = _presented(flat, function, names)
        closed, shapes = jax.make_jaxpr(presented, return_shape=True)(*inputs)
        if (reference := first_reference(closed.jaxpr)) is not None:
            leave(reference, site)
            return jax.tree.unflatten(jax.tree.structure(shapes), evaluate(closed, *inputs))
        donated = donation.among([paths[i][0] for i in dynamic])
        results = _call(closed, site, inputs, names, donated)
        return jax.tree.unflatten(jax.tree.structure(shapes), results)

    return functools.wraps(function, updated=())(run)


def _presented(
    flat: Callable[..., Any], function: Callable[..., Any], names: Sequence[str]
) -> Callable[..., Any]:
    """A function of leaves that errors of JAX name as the user's, and its arguments by their names.

    Args:
        flat: the function.
        function: the user's.
        names: of the leaves.
    """
    words = [re.sub(r"\W+", "_", name).strip("_") for name in names]
    words = [
        word if word.isidentifier() and not keyword.iskeyword(word) else f"arg{i}"
        for i, word in enumerate(words)
    ]
    if len(set(words)) < len(words):
        words = [f"{word}_{i}" for i, word in enumerate(words)]
    wrapped: Any = functools.wraps(function, updated=())(flat)
    wrapped.__signature__ = inspect.Signature(
        [inspect.Parameter(word, inspect.Parameter.POSITIONAL_ONLY) for word in words]
    )
    return wrapped


def _flattened(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[tuple[Any, Any]], Any]:
    """Paths and leaves of arguments, and their tree; a :class:`Constant` is a leaf.

    Static arguments that are trees stay as they are: one made anew may lack what is no leaf.
    """
    whole = {id(value) for value in (*args, *kwargs.values()) if not _is_dynamic(value)}
    return jax.tree_util.tree_flatten_with_path(
        (args, kwargs), is_leaf=lambda value: _is_constant(value) or id(value) in whole
    )


def _is_dynamic(tree: Any) -> bool:
    """Whether it holds arrays that are traced, or constants in their place."""
    leaves = jax.tree.leaves(tree, is_leaf=_is_constant)
    return any(isinstance(leaf, (jax.core.Tracer, Constant)) for leaf in leaves)


def _is_constant(value: Any) -> bool:
    return isinstance(value, Constant)


def _call(
    closed: ClosedJaxpr,
    site: Site,
    inputs: list[Any],
    names: list[str],
    donated: Collection[int],
) -> list[Any]:
    """Compute what must be computed; arguments and constants that are returned are just that."""
    # The others are part of the function, which must not meet other ones where it is called.
    closed, lifted = lift_constants(closed, is_traced)
    names = [*(f"constant{i}" for i in range(len(lifted))), *names]
    values = [*lifted, *inputs]
    pruned = prune(closed, names)
    if pruned.is_trivial:
        site.report.add_variant(
            Variant(site.name, arguments=[text_of(aval) for aval in closed.in_avals])
        )
        return pruned.results(values, ())
    returned = {v for v in closed.jaxpr.outvars if not isinstance(v, Literal)}
    donors = {len(lifted) + i for i in donated}
    places = [
        place
        for place, i in enumerate(pruned.used)
        if i in donors and closed.jaxpr.invars[i] not in returned
    ]
    results = call(pruned.core, site, [values[i] for i in pruned.used], places)
    return pruned.results(values, results)


def _names(function: Callable[..., Any], paths: Sequence[Any]) -> list[str]:
    """Readable names of leaves: ``x``, ``params['w']``."""
    try:
        positional = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        positional = []
    names = []
    for part, which, *rest in paths:
        if part.idx == 0:
            index = which.idx
            name = positional[index] if index < len(positional) else f"arg{index}"
        else:
            name = str(which.key)
        names.append(name + jax.tree_util.keystr(tuple(rest)))
    return names
