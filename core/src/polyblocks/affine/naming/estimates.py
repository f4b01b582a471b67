"""Estimates of nests by the cost model, as attributes."""

from __future__ import annotations

from functools import partial
from typing import Any

from polyblocks.affine.cost import rates
from polyblocks.affine.cost.estimate import Estimator
from polyblocks.affine.likeness import Remembered
from polyblocks.affine.mlir.json_attributes import to_attribute
from polyblocks.affine.mlir.open_team import parallel_cost
from polyblocks.affine.model import Nest, Sequence
from polyblocks.attributes import ESTIMATE_ATTRIBUTE, KERNEL_ATTRIBUTE


def estimate_nests(sequence: Sequence, owner: str, context: Any) -> None:
    """Give all nests that have a name the attribute with their estimate.

    Args:
        sequence: the nests; nothing else of them is changed.
        owner: name of the pass, for decisions.
        context: the target, and what takes decisions.
    """
    if not sequence.name:
        _report_unknown(owner, context)
    launch = None
    if not context.target.launches_nests:
        launch = parallel_cost(sequence, context.target.shared_level)
    written = launch is not None and context.target.vector_bits > 0
    estimator = Estimator(context.target, sequence.buffers, launch, written)
    named = [nest for nest in sequence.nests() if nest.name]
    known: Remembered[dict[str, Any]] = Remembered(named)
    for nest in named:
        numbers = known.get(nest, nest.body, partial(_numbers, estimator, nest))
        nest.estimate = to_attribute(numbers)
        if not nest.changed:
            # In place: to write a nest takes longer than to estimate it.
            for op in nest.source:
                if KERNEL_ATTRIBUTE in op.attributes:
                    op.attributes[ESTIMATE_ATTRIBUTE] = nest.estimate
        context.decide(owner, nest.name, "estimate", **numbers)


def _report_unknown(owner: str, context: Any) -> None:
    """Report missing rates of the description, once for the program."""
    target = context.target
    for what, missing in (
        ("unknown times", rates.unknown_rates(target)),
        ("unknown caches", rates.unknown_caches(target)),
    ):
        if missing:
            context.decide(owner, "main", what, missing=list(missing), target=target.name)


def _numbers(estimator: Estimator, nest: Nest) -> dict[str, Any]:
    return estimator.estimate(nest).to_json()
