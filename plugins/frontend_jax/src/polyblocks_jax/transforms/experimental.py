"""Rules of the primitive for transformations in ``jax.experimental``: ``jet`` and ``sparsify``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import jax
from jax.experimental import jet
from jax.extend.core import ClosedJaxpr
from jax.interpreters import mlir

from polyblocks_jax.capture import capturing
from polyblocks_jax.compat import cpu_lowering, default_lowering
from polyblocks_jax.compiler import Site
from polyblocks_jax.transforms.primitive import Updates, polyblocks_call_p
from polyblocks_jax.transforms.transformations import bind

#: How a function was derived: ``kind`` in :class:`polyblocks.frontends.function_report.Variant`.
TAYLOR = "taylor"
SPARSE = "sparse"

#: The module with the rules of ``sparsify``.
SPARSE_MODULE = "jax.experimental.sparse.transform"


def _jet(
    primals: Sequence[Any],
    series: Sequence[Sequence[Any]],
    *,
    jaxpr: ClosedJaxpr,
    site: Site,
    kind: str,
    updates: Updates,
) -> tuple[Any, Any]:
    """For ``jet``: the coefficients of Taylor series are further arguments and results."""
    del kind, updates
    values, tree = jax.tree.flatten((list(primals), list(series)))
    avals = tuple(jax.typeof(value) for value in values)
    made, tree_out = jet._jet_jaxpr(jaxpr, len(series[0]), avals, tree)
    results = bind(made, site, TAYLOR, values)
    primals_out, series_out = jax.tree.unflatten(tree_out(), results)
    return primals_out, series_out


_jet_rules: dict[Any, Any] = jet.jet_rules
_jet_rules[polyblocks_call_p] = _jet


def add_sparse_rule() -> None:
    """Add the rules for ``sparsify`` and ``BCSR`` once ``jax.experimental.sparse`` is imported.

    Importing it takes half a second, and only those who use it pay that. They have imported it when
    ``sparsify`` calls a function, so that is when to look.
    """
    transform: Any = sys.modules.get(SPARSE_MODULE)
    rules = getattr(transform, "sparse_rules_bcoo", None)
    # None: another thread is importing it.
    if rules is not None and polyblocks_call_p not in rules:
        rules[polyblocks_call_p] = _sparse
        _lower_products_of_rows()


def _lower_products_of_rows() -> None:
    """Let JAX lower products of a ``BCSR`` matrix to gathers and sums, as those of ``BCOO`` are.

    JAX calls a library on CPUs, and still does where it lowers for XLA.
    """
    from jax.experimental.sparse.bcsr import bcsr_dot_general_p

    own_rule, gathers = cpu_lowering(bcsr_dot_general_p), default_lowering(bcsr_dot_general_p)

    def lower(ctx: Any, *operands: Any, **params: Any) -> Any:
        return (gathers if capturing.get() else own_rule)(ctx, *operands, **params)

    if own_rule is not gathers:
        mlir.register_lowering(bcsr_dot_general_p, lower, platform="cpu")


def _sparse(
    environment: Any,
    *values: Any,
    jaxpr: ClosedJaxpr,
    site: Site,
    kind: str,
    updates: Updates,
) -> Any:
    """For ``sparsify``: arguments and results are the arrays that sparse ones consist of."""
    del kind, updates
    transform: Any = sys.modules[SPARSE_MODULE]
    made, tree_out = transform._sparsify_jaxpr(environment, jaxpr, *values)
    args = jax.tree.leaves(transform.spvalues_to_arrays(environment, values))
    results = jax.tree.unflatten(tree_out, bind(made, site, SPARSE, args))
    return transform.arrays_to_spvalues(environment, results)
