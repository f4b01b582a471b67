"""split-stacks: an array of which every part is written and read by itself becomes as many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.access import begins_and_ends_with_memory
from polyblocks.affine.model import (
    Buffer,
    IndirectAtomic,
    IndirectLoad,
    IndirectStore,
    Load,
    Nest,
    Sequence,
    Store,
    reads,
    walk,
    writes,
)
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class SplitStacksPass(NestPass):
    """Give every part of an array along one dimension its own buffer, if each access names one.

    Each part has a producer then, which can be fused with what reads it.

    Before::

        affine.for %i = 0 to 8 { ... affine.store %x, %stack[0, %i] }
        affine.for %i = 0 to 8 { ... affine.store %y, %stack[1, %i] }
        affine.for %i = 0 to 8 {
          %x = affine.load %stack[0, %i]
          %y = affine.load %stack[1, %i]
          ... }

    After::

        affine.for %i = 0 to 8 { ... affine.store %x, %first[%i] }
        affine.for %i = 0 to 8 { ... affine.store %y, %second[%i] }
        affine.for %i = 0 to 8 {
          %x = affine.load %first[%i]
          %y = affine.load %second[%i]
          ... }
    """

    name: ClassVar[str] = "split-stacks"
    #: Parts of an array, at most.
    parts: int = 16

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Split every buffer that can be."""
        if context.options.polyblocks_disable_affine_fusion:
            return
        for buffer, users in self._accesses(sequence).items():
            dimension = self._dimension(buffer, [n for _, n in users])
            if dimension is None:
                continue
            shape = (*buffer.shape[:dimension], *buffer.shape[dimension + 1 :])
            size = buffer.bytes_per_element
            parts = [
                Buffer(shape, buffer.element, "alloc", bytes_per_element=size)
                for _ in range(buffer.shape[dimension])
            ]
            for nest, node in users:
                node.buffer = parts[node.index[dimension].const]
                node.index = (*node.index[:dimension], *node.index[dimension + 1 :])
                nest.changed = True
            context.decide(
                self.name, users[0][0].name, "parts", buffer=list(buffer.shape), dimension=dimension
            )

    def _accesses(self, sequence: Sequence) -> dict[Buffer, list[tuple[Nest, Load | Store]]]:
        """The accesses of all buffers that only affine accesses of nests touch."""
        barred = sequence.viewed()
        found: dict[Buffer, list[tuple[Nest, Load | Store]]] = {}
        for item in sequence.items:
            if not isinstance(item, Nest):
                barred |= {*reads(item), *writes(item)}
                continue
            for node in walk(item.body):
                if isinstance(node, (Load, Store)):
                    if node.buffer.kind == "alloc":
                        found.setdefault(node.buffer, []).append((item, node))
                elif isinstance(node, (IndirectLoad, IndirectStore, IndirectAtomic)):
                    barred.add(node.buffer)
        return {b: users for b, users in found.items() if b not in barred}

    def _dimension(self, buffer: Buffer, nodes: list[Load | Store]) -> int | None:
        """The dimension along which every access names a part; None if there is none."""
        if not begins_and_ends_with_memory(buffer):
            return None
        for dimension, extent in enumerate(buffer.shape):
            if not 2 <= extent <= self.parts or len(buffer.shape) < 2:
                continue
            at = [n.index[dimension] for n in nodes]
            if all(e.is_constant and 0 <= e.const < extent for e in at):
                return dimension
        return None
