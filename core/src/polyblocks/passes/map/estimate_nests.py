"""estimate-nests: every nest says what it costs by the cost model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from polyblocks.affine.cost import rates
from polyblocks.affine.cost.estimate import LAUNCH, Estimator
from polyblocks.affine.likeness import Remembered
from polyblocks.affine.mlir.json_attributes import from_attribute, to_attribute
from polyblocks.affine.mlir.open_team import parallel_cost
from polyblocks.affine.model import Nest, Sequence
from polyblocks.affine.subnests import has_register_tile
from polyblocks.attributes import ESTIMATE_ATTRIBUTE, KERNEL_ATTRIBUTE
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class EstimateNestsPass(NestPass):
    """Annotate nests with work, bytes per memory level and predicted time; change nothing.

    Before: ``affine.parallel ... {polyblocks.kernel = "neg"}``; after::

        affine.parallel ... {polyblocks.estimate = {bytes = {L1 = 256, ...}, flops = 64, ...},
                             polyblocks.kernel = "neg"}

    The numbers travel to the kernel's row in the manifest, for ``explain``. There is no predicted
    time where the target's description lacks a rate, and a decision says which.
    """

    name: ClassVar[str] = "estimate-nests"

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Estimate all nests."""
        if not sequence.name:
            self._tell_unknown(context)
        launch = None
        if context.target.multiprocessor is None:
            launch = parallel_cost(sequence, context.target.shared_level)
        written = launch is not None and context.target.vector_bits > 0
        estimator = Estimator(context.target, sequence.buffers, launch, written)
        named = [nest for nest in sequence.nests() if nest.name]
        known: Remembered[dict[str, Any]] = Remembered(named)
        for nest in named:
            if nest.estimate is not None and has_register_tile(nest.body):
                # Predicted when its tiling was chosen.
                numbers = _launched(from_attribute(nest.estimate), launch)
            else:
                numbers = known.get(nest, nest.body, partial(_numbers, estimator, nest))
            nest.estimate = to_attribute(numbers)
            if not nest.changed:
                # In place: to write a nest takes longer than to estimate it.
                for op in nest.source:
                    if KERNEL_ATTRIBUTE in op.attributes:
                        op.attributes[ESTIMATE_ATTRIBUTE] = nest.estimate
            context.decide(self.name, nest.name, "estimate", **numbers)

    def _tell_unknown(self, context: Any) -> None:
        """Report missing rates of the description, once for the program."""
        target = context.target
        for what, missing in (
            ("unknown times", rates.unknown_rates(target)),
            ("unknown caches", rates.unknown_caches(target)),
        ):
            if missing:
                context.decide(self.name, "main", what, missing=list(missing), target=target.name)


def _numbers(estimator: Estimator, nest: Nest) -> dict[str, Any]:
    return estimator.estimate(nest).to_json()


def _launched(numbers: dict[str, Any], launch: float | None) -> dict[str, Any]:
    """An estimate of a nest that was made before it was known what starting it takes."""
    seconds = numbers["seconds"]
    if launch is None or not seconds.get(LAUNCH):
        return numbers
    out = numbers | {"seconds": seconds | {LAUNCH: launch}}
    if "predicted_seconds" in numbers:
        out["predicted_seconds"] = numbers["predicted_seconds"] - seconds[LAUNCH] + launch
    return out
