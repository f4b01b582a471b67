"""``@main`` in two forms: its nests as a model that passes change, and MLIR that follows later.

Reading all nests and writing them back costs more than most passes do. The model is read once and
stays while one pass after the other works on it; the module is brought up to date when something
wants to see it.
"""

from __future__ import annotations

from typing import Any

from polyblocks.affine.mlir import reader, writer
from polyblocks.affine.mlir.verify import verify_nest
from polyblocks.affine.model import Buffer, Nest, Opaque, Sequence, reads, writes
from polyblocks.mlir import ir

#: The buffers that an item reads, and those that it writes.
_Effects = tuple[frozenset[Buffer], frozenset[Buffer]]


class NestCache:
    """The model of one module's ``@main``.

    Attributes:
        module: the module; it says what the model says only after :meth:`write`.
        sequence: the model, to be changed in place.
    """

    def __init__(self, module: Any) -> None:
        self.module = module
        with module.context, ir.Location.unknown():
            self.sequence = reader.read(module)
        #: The contents of each block in the module.
        self._written: list[tuple[Sequence, list[Nest | Opaque]]] = [
            (sequence, list(sequence.items)) for sequence in self.sequence.all()
        ]
        #: The effects of each block's items, and its buffers, when unused ones were dropped last.
        self._pruned: dict[int, tuple[list[_Effects], list[Buffer], list[Buffer | None]]] = {}

    def apply(self, transform: Any, context: Any) -> None:
        """Call ``transform(sequence, context)`` under the module's context.

        It is called for ``@main``, and for the body of every loop and branch around nests.
        """
        with self.module.context, ir.Location.unknown():
            for sequence, _ in self._written:
                transform(sequence, context)
        standing = set(map(id, self.sequence.all()))
        self._written = [pair for pair in self._written if id(pair[0]) in standing]
        # Inner ones first: what they still use is used by those around them.
        for sequence, _ in reversed(self._written):
            self._prune(sequence)

    def verify(self, *, again: bool = True) -> None:
        """Check all nests (:func:`polyblocks.affine.mlir.verify.verify_nest`).

        Args:
            again: also the bodies that were checked already and not replaced since.
        """
        for sequence, _ in self._written:
            for nest in sequence.nests():
                verify_nest(nest, again=again)

    def write(self) -> bool:
        """Bring the module up to date, and say whether it was not; the model stays in step."""
        written = False
        # Inner ones first: what an outer one does not use any more is dropped with it.
        for position in reversed(range(len(self._written))):
            sequence, before = self._written[position]
            items = sequence.items
            changed = any(isinstance(item, Nest) and item.changed for item in items)
            if not changed and items == before:
                continue
            with self.module.context:
                writer.write(before, sequence)
            self._written[position] = (sequence, list(items))
            written = True
        return written

    def _prune(self, sequence: Sequence) -> None:
        """Keep the buffers that something uses, as reading the module again would."""
        effects = [(frozenset(reads(item)), frozenset(writes(item))) for item in sequence.items]
        viewed = [b.viewed for b in sequence.buffers]
        # Most passes leave all effects as they were, and nests remember them.
        if self._pruned.get(id(sequence)) == (effects, sequence.buffers, viewed):
            return
        used: dict[Buffer, None] = {}
        for read, written in effects:
            for buffer in (*read, *written):
                seen: Buffer | None = buffer
                while seen is not None and seen not in used:
                    used[seen] = None
                    seen = seen.viewed
        arguments = [b for b in sequence.buffers if b.kind in ("input", "output")]
        used.update(dict.fromkeys(arguments))
        sequence.buffers[:] = sorted(used, key=lambda b: b.number)
        buffers = list(sequence.buffers)
        self._pruned[id(sequence)] = effects, buffers, [b.viewed for b in buffers]
