"""``@main`` in two forms: its nests as a model that passes change, and MLIR that follows later.

Reading all nests and writing them back costs more than most passes do. The model is read once and
stays while one pass after the other works on it; the module is brought up to date when somebody
wants to see it.
"""

from __future__ import annotations

from typing import Any

from polyblocks.affine import reader, writer
from polyblocks.affine.model import Buffer, Nest, Opaque, reads, writes
from polyblocks.mlir import ir


class HeldNests:
    """The model of one module's ``@main``.

    Attributes:
        module: the module; it says what the model says only after :meth:`write`.
        sequence: the model, to be changed in place.
    """

    def __init__(self, module: Any) -> None:
        self.module = module
        with module.context, ir.Location.unknown():
            self.sequence = reader.read(module)
        #: What stands in the module.
        self._written: list[Nest | Opaque] = list(self.sequence.items)

    def apply(self, transform: Any, context: Any) -> None:
        """Call ``transform(sequence, context)`` under the module's context."""
        with self.module.context, ir.Location.unknown():
            transform(self.sequence, context)
        self._prune()

    def write(self) -> bool:
        """Bring the module up to date, and say whether it was not; the model stays in step."""
        items = self.sequence.items
        changed = any(isinstance(item, Nest) and item.changed for item in items)
        if not changed and items == self._written:
            return False
        writer.write(self.module, self._written, self.sequence)
        self._written = list(items)
        return True

    def _prune(self) -> None:
        """Keep the buffers that somebody uses, as reading the module again would."""
        used: dict[Buffer, None] = {}
        for item in self.sequence.items:
            for buffer in (*reads(item), *writes(item)):
                seen: Buffer | None = buffer
                while seen is not None and seen not in used:
                    used[seen] = None
                    seen = seen.viewed
        arguments = [b for b in self.sequence.buffers if b.kind in ("input", "output")]
        used.update(dict.fromkeys(arguments))
        self.sequence.buffers[:] = sorted(used, key=lambda b: b.number)
