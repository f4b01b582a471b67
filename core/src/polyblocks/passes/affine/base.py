"""The frame of a mid-level pass: read the nests, change the model, write what changed."""

from __future__ import annotations

from typing import Any

from polyblocks.affine.model import Sequence


class NestPass:
    """Base of passes that work on the model; a subclass says ``name`` and ``transform``."""

    def run(self, module: Any, context: Any) -> None:
        """Read, transform, write."""
        from polyblocks.affine import reader, writer
        from polyblocks.mlir import ir

        with module.context, ir.Location.unknown():
            before = reader.read(module)
            after = Sequence(list(before.items), before.buffers)
            self.transform(after, context)
            writer.write(module, before, after)

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Change the sequence in place; changed nests have ``changed = True``."""
        raise NotImplementedError
