"""The frame of a mid-level pass: change the model of the nests."""

from __future__ import annotations

from typing import Any, ClassVar

from polyblocks.affine.model import Sequence
from polyblocks.passes import facts


class NestPass:
    """Base of passes that work on the model; a subclass says ``name`` and ``transform``.

    In a pipeline such passes share one model: it is read before the first of them and written
    after the last (see :meth:`polyblocks.pipeline.PassContext.nests`).

    Attributes:
        needs, establishes, breaks: names of :mod:`polyblocks.passes.facts`. A subclass that needs
            more adds to :data:`facts.NESTS`.
    """

    needs: ClassVar[frozenset[str]] = frozenset({facts.NESTS})
    establishes: ClassVar[frozenset[str]] = frozenset()
    breaks: ClassVar[frozenset[str]] = frozenset()

    def run(self, module: Any, context: Any) -> None:
        """Prepare, read, transform, write: the pass by itself."""
        from polyblocks.affine.mlir.nest_cache import NestCache

        self.prepare(module)
        nests = NestCache(module)
        nests.apply(self.transform, context)
        nests.write()

    def prepare(self, module: Any) -> None:
        """Change the module before it is read; only for the first pass of a row."""

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Change the sequence in place; what changes a nest ends with :meth:`Nest.replace`."""
        raise NotImplementedError
