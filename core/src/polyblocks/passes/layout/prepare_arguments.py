"""prepare-arguments: what depends on constant arguments alone moves to a branch of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.model import (
    Buffer,
    Check,
    IndirectAtomic,
    IndirectStore,
    Nest,
    Sequence,
    reads,
    walk,
    writes,
)
from polyblocks.affine.preparation import Preparation
from polyblocks.affine.users import Users
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class PrepareArgumentsPass(NestPass):
    """Move nests that read constant arguments, and nothing else, to the program's preparation.

    Whatever they make stays the same from call to call, so it is made once, and not fused with
    what follows. Scales of normalizations, conversions and rearrangements of weights are examples.
    Results with more elements than their inputs are not moved: they would add memory traffic.

    Before::

        scf.if %true {
        } {polyblocks.region = "preparation"}
        affine.for %c = 0 to 64 { ... affine.load %variance[%c] ... math.rsqrt ...
          affine.store ... %scale[%c] ... }

    After::

        scf.if %true {
          affine.for %c = 0 to 64 { ... affine.load %variance[%c] ... math.rsqrt ...
            affine.store ... %scale[%c] ... }
        } {polyblocks.region = "preparation"}
    """

    name: ClassVar[str] = "prepare-arguments"
    needs: ClassVar[frozenset[str]] = frozenset({facts.NESTS, facts.KINDS, facts.UNFUSED})

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Move them; in program order, so that what they make counts for those behind."""
        preparation = Preparation.of(sequence)
        if preparation is None:
            return
        users, viewed = Users(sequence), sequence.viewed()
        for nest in sequence.nests():
            made = {b.base for b in writes(nest)}
            if not all(self._is_own(b, nest, users, viewed) for b in made):
                continue
            if not preparation.depends_on_constants(nest.body) or not _is_plain(nest):
                continue
            if _elements(made) > _elements({b.base for b in reads(nest)}):
                continue
            for buffer in made:
                preparation.keep(buffer)
            preparation.append(nest.body, nest, nest.name, nest.kind)
            sequence.items.remove(nest)
            context.decide(self.name, nest.name, "prepared", bytes=sum(b.nbytes for b in made))

    def _is_own(self, buffer: Buffer, nest: Nest, users: Users, viewed: set[Buffer]) -> bool:
        """Whether a nest alone makes an intermediate buffer, before anything reads it."""
        readers = users.readers(buffer)
        return (
            buffer.kind == "alloc"
            and buffer not in viewed
            and users.writers(buffer) == [nest]
            and nest not in readers
            and all(users.before(nest, reader) for reader in readers)
        )


def _elements(buffers: set[Buffer]) -> int:
    return sum(b.numel for b in buffers)


def _is_plain(nest: Nest) -> bool:
    """Whether it cannot fail, and writes all that it writes in any order."""
    return not any(isinstance(n, (Check, IndirectStore, IndirectAtomic)) for n in walk(nest.body))
