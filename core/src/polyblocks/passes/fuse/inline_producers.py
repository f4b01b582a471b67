"""inline-producers: what no tile holds is computed again rather than written to memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from polyblocks.affine.model import For, Load, walk
from polyblocks.affine.rewrites.inlining import Candidate, Producer
from polyblocks.passes.fuse.fuse_slices import FuseSlicesPass
from polyblocks.passes.fuse.recomputing import against_memory
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
        _, more = self.gathered(candidate, producer, target)
        numbers = against_memory(candidate, producer, times, more, target)
        if numbers is None:
            return super().is_cheaper(candidate, producer, times, target)
        if target.multiprocessor is not None and not _read_in_steps(candidate):
            numbers["launch_seconds"] = target.shared_level.overhead
        saved = numbers["traffic_seconds"] + numbers.get("launch_seconds", 0.0)
        return numbers["recompute_seconds"] <= saved, numbers


def _read_in_steps(candidate: Candidate) -> bool:
    """Whether steps of a reduction read the buffer."""
    return any(
        isinstance(n, Load) and n.buffer is candidate.buffer
        for consumer in candidate.consumers
        for loop in walk(consumer.body)
        if isinstance(loop, For) and loop.inits
        for n in walk(loop.body)
    )
