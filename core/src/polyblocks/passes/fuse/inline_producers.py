"""inline-producers: what no tile holds is computed again rather than written to memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from polyblocks.affine import operation_cost as cost
from polyblocks.affine.cost import rates
from polyblocks.affine.model import For, Load, walk
from polyblocks.affine.rewrites.inlining import Candidate, Producer
from polyblocks.passes.fuse.fuse_slices import FuseSlicesPass
from polyblocks.target import TargetDescription


@dataclass(frozen=True)
class InlineProducersPass(FuseSlicesPass):
    """As ``fuse-slices``, but recomputation is weighed against the way through memory.

    On a target whose description lacks a rate for that, ``fuse-slices`` has had the last word.

    Before::

        affine.for %i = 0 to 9 { ... affine.store %v, %b[%i] }
        affine.for %i = 0 to 8 {
          %x = affine.load %b[%i]
          %y = affine.load %b[%i + 1]
          ... }

    After: one nest, also where ``%v`` takes longer than a load from a first-level cache, if that is
    quicker than to write ``%b`` and to read it. On a grid of blocks a nest less is a launch less,
    which counts unless steps of a reduction would compute ``%v``: contractions load their operands.
    """

    name: ClassVar[str] = "inline-producers"

    def is_cheaper(
        self, candidate: Candidate, producer: Producer, times: int, target: TargetDescription
    ) -> tuple[bool, dict[str, float]]:
        extra = max(0, times - candidate.buffer.numel)
        _, more = self.gathered(candidate, producer, target)
        slots = cost.operations(producer.body) * extra + more * candidate.buffer.numel
        recompute = rates.compute_seconds(target, slots)
        # Written (which reads the line first) and read once by each consumer; neighbours that
        # are read again come from a cache.
        trips = 2 + len(candidate.consumers)
        nbytes = candidate.buffer.nbytes
        traffic = rates.traffic_seconds(target, trips * nbytes, nbytes)
        if recompute is None or traffic is None:
            return super().is_cheaper(candidate, producer, times, target)
        numbers = {"recompute_seconds": recompute, "traffic_seconds": traffic}
        if target.multiprocessor is not None and not _read_in_steps(candidate):
            numbers["launch_seconds"] = target.shared_level.overhead
        return recompute <= traffic + numbers.get("launch_seconds", 0.0), numbers


def _read_in_steps(candidate: Candidate) -> bool:
    """Whether steps of a reduction read the buffer."""
    return any(
        isinstance(n, Load) and n.buffer is candidate.buffer
        for consumer in candidate.consumers
        for loop in walk(consumer.body)
        if isinstance(loop, For) and loop.inits
        for n in walk(loop.body)
    )
