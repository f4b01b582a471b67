"""Stores of a group's stages: whether they may pass the caches, and what they then wait for."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from math import ceil, prod

from polyblocks.affine.access import stride_along
from polyblocks.affine.model import Buffer, Store
from polyblocks.affine.tiles.fusion_stages import FusionStage


@dataclass(frozen=True)
class BufferWriter:
    """The stage that stores to an output of a group, and its store.

    Attributes:
        stages: the group.
        buffer: the output.
        stage: that stores most of its elements; None if none does.
        store: that it does it by.
    """

    stages: list[FusionStage]
    buffer: Buffer
    stage: FusionStage | None = None
    store: Store | None = None

    @classmethod
    def of(cls, stages: list[FusionStage], buffer: Buffer) -> BufferWriter:
        """The writer of an output."""
        found = [(at, store) for at in stages for store in at.stores if store.buffer is buffer]
        if not found:
            return cls(stages, buffer)
        return cls(stages, buffer, *max(found, key=lambda one: elements_stored(*one)))

    @property
    def fills_rows(self) -> bool:
        """Whether whole rows are stored: a tile's loops along others have bounds, which vary.

        A stage of its own has none: it begins with a part of a vector.
        """
        if self.stage is None or self.store is None:
            return len(self.stages) == 1
        return len(self.stages) == 1 or self.stage.fills_rows(self.store)

    def walks(self, local: Collection[Buffer]) -> bool:
        """Whether what stores reads elements that follow each other, and not of tiles alone.

        Args:
            local: buffers of a tile.
        """
        if self.stage is None or not self.stage.loops:
            return False
        if self.stage.loads and all(n.buffer in local for n in self.stage.loads):
            return False
        last = self.stage.variables[-1]
        steps = (stride_along(n.buffer, n.index, last) for n in self.stage.loads)
        return all(step is None or abs(step) <= 1 for step in steps)

    def waits_to_pass(self, writes: float | None, outside: Collection[Buffer]) -> float:
        """Times of a byte read that a byte takes that passes the caches, beyond what it waits for.

        Memory takes bytes as fast as it is described to while the same stage reads others; what
        other stages read comes before.

        Args:
            writes: bytes that pass in the time of a byte read, where the description says it.
            outside: the buffers that are not the group's own.
        """
        if self.stage is None or not writes:
            return 1.0
        earlier = self.stages[: self.stages.index(self.stage)]
        before = {n.buffer for at in earlier for n in at.loads}
        beside = {n.buffer for n in self.stage.loads} - before
        read = sum(b.nbytes for b in outside if b in beside)
        return max(1.0, 1.0 / writes - read / max(self.buffer.nbytes, 1))


def elements_stored(stage: FusionStage, store: Store) -> int:
    """How many elements a store writes, all tiles together."""
    places = stage.places(store)
    if places is None:
        return store.buffer.numel
    ranges = ((p.step, *p.range(n)) for p, n in zip(places, store.buffer.shape, strict=True))
    return prod(ceil((end - begin) / step) for step, begin, end in ranges)
