"""estimate-nests: every nest says what it costs by the cost model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.cost.estimate import Estimator
from polyblocks.affine.model import Sequence
from polyblocks.passes.base import NestPass

KERNEL = "polyblocks.kernel"
#: Attribute of a nest: a dictionary, :meth:`polyblocks.affine.cost.estimate.Estimate.to_json`.
ESTIMATE = "polyblocks.estimate"


@dataclass(frozen=True)
class EstimateNestsPass(NestPass):
    """Annotate nests with work, bytes per memory level and predicted time; change nothing.

    Before: ``affine.parallel ... {polyblocks.kernel = "neg"}``; after::

        affine.parallel ... {polyblocks.estimate = {bytes = {L1 = 256, ...}, flops = 64, ...},
                             polyblocks.kernel = "neg"}

    The numbers travel to the kernel's row in the manifest, for ``explain``.
    """

    name: ClassVar[str] = "estimate-nests"

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Estimate all nests."""
        estimator = Estimator(context.target, sequence.buffers)
        for nest in sequence.nests():
            if not nest.name:
                continue
            numbers = estimator.estimate(nest).to_json()
            nest.estimate = to_attribute(numbers)
            if not nest.changed:
                # In place: to write a nest takes longer than to estimate it.
                for op in nest.source:
                    if KERNEL in op.attributes:
                        op.attributes[ESTIMATE] = nest.estimate
            context.decide(self.name, nest.name, "estimate", **numbers)


def to_attribute(value: Any) -> Any:
    """JSON values as an MLIR attribute (needs a current context).

    Raises:
        TypeError: it holds something else than dictionaries, strings and numbers.
    """
    from polyblocks.mlir import ir

    if isinstance(value, dict):
        return ir.DictAttr.get({name: to_attribute(entry) for name, entry in value.items()})
    if isinstance(value, str):
        return ir.StringAttr.get(value)
    if isinstance(value, int):
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
    if isinstance(value, float):
        return ir.FloatAttr.get_f64(value)
    raise TypeError(f"no attribute for a {type(value).__name__}")


def from_attribute(attribute: Any) -> Any:
    """The inverse of :func:`to_attribute`."""
    from polyblocks.mlir import ir

    if isinstance(attribute, ir.DictAttr):
        return {entry.name: from_attribute(entry.attr) for entry in attribute}
    return attribute.value
