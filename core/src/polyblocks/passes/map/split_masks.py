"""split-masks: rows are cut where affine conditions leave nothing of what they load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.masks.bands import bands_of
from polyblocks.affine.masks.constraints import Condition, conditions_of
from polyblocks.affine.model import (
    Alloca,
    AnyStore,
    For,
    Node,
    Sequence,
    Value,
    remove_dead,
    walk,
)
from polyblocks.affine.subnests import has_register_tile
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class SplitMasksPass(NestPass):
    """Cut innermost loops at affine bounds where a mask makes what they load useless.

    Bands of matrices load their own part of a row and fill the others. Bounds are at whole
    lines, and each piece does what the program does in its iterations.

    Before::

        affine.for %i = 0 to 2048 { affine.for %j = 0 to 2048 {
          %m = arith.cmpi sle, %j, %i
          %x = affine.load %a[%i, %j]
          %z = affine.load %c[%i, %j]
          %y = arith.select %m, %x, %z
          affine.store %y, %b[%i, %j] } }

    After::

        affine.for %i = 0 to 2048 {
          affine.for %j = 0 to ((%i + 16) floordiv 16) * 16 { ... }
          affine.for %j = ((%i + 16) floordiv 16) * 16 to 2048 {
            %z = affine.load %c[%i, %j]
            affine.store %z, %b[%i, %j] } }
    """

    name: ClassVar[str] = "split-masks"
    #: Bytes that a row loads less, at least: two loops more take as long to start as the first
    #: cache to hand these over.
    least: int = 2048
    #: The same as a part of what the row accesses. A band of 2048x2048 takes 0.18 ms instead of
    #: 0.24 on a Zen 4. A triangle, a quarter, takes 0.27 instead of 0.31 or 0.47 instead of 0.37.
    part: float = 0.3

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Cut the loops of every nest that is no tile."""
        for nest in sequence.nests():
            if any(isinstance(n, Alloca) for n in walk(nest.body)) or has_register_tile(nest.body):
                continue
            conditions = conditions_of(nest.body)
            if not any(c.if_true or c.if_false for c in conditions.values()):
                continue
            cuts = _Cuts(conditions, context.target.line, self.least, self.part)
            cuts.block(nest.body, [])
            if cuts.pieces:
                # Not a tile of sub-nests: each thread takes rows that follow each other.
                remove_dead(nest.body)
                nest.replace()
                context.decide(
                    self.name, nest.name, "rows cut", loops=cuts.pieces, saved_bytes=cuts.saved
                )


@dataclass
class _Cuts:
    """Cuts the loops of a nest.

    Args:
        conditions: comparisons of affine integers.
        line: bytes.
        least, part: what a cut must save.

    Attributes:
        pieces: loops that others became.
        saved: bytes that one row of each loads less, on average.
    """

    conditions: dict[Value, Condition]
    line: int
    least: int
    part: float
    pieces: int = 0
    saved: int = 0

    def block(self, nodes: list[Node], around: list[For]) -> None:
        """Cut loops in some code, in place."""
        out: list[Node] = []
        for node in nodes:
            if not isinstance(node, For):
                out.append(node)
                continue
            if any(isinstance(n, For) for n in node.body):
                self.block(node.body, [*around, node])
                out.append(node)
            else:
                out += self._cut(node, around)
        nodes[:] = out

    def _cut(self, loop: For, around: list[For]) -> list[For]:
        if not around or loop.inits or loop.level or loop.unit or loop.copy or loop.tile:
            return [loop]
        sizes = [n.buffer.bytes_per_element for n in loop.body if isinstance(n, AnyStore)]
        if not sizes:
            return [loop]
        bands = bands_of(loop, around, self.conditions, max(self.line // min(sizes), 1))
        if bands is None or bands.saved < max(self.least, self.part * bands.before):
            return [loop]
        self.pieces += len(bands.pieces)
        self.saved += round(bands.saved)
        return bands.pieces
