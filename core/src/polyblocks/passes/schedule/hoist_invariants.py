"""hoist-invariants: run-time indices and their checks are computed once, outside of inner loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.cleanup.invariants import invariants
from polyblocks.affine.model import (
    Check,
    For,
    Node,
    Sequence,
)
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class HoistInvariantsPass(NestPass):
    """Move what is the same in all iterations of an inner loop in front of it, checks included.

    Only loops with such a check are touched: in all others the code generator sees what is
    invariant by itself, while a check in the loop keeps it from being vectorized. The outermost
    loop of a nest stays alone, for the threads.

    Before::

        affine.for %i = 0 to 1000 { affine.for %j = 0 to 64 {
          %r = affine.load %rows[%i]
          %ok = arith.cmpi ult, %r, %c100 : index
          cf.assert %ok, "index out of range"
          %x = memref.load %table[%r, %j] ... } }

    After::

        affine.for %i = 0 to 1000 {
          %r = affine.load %rows[%i]
          %ok = arith.cmpi ult, %r, %c100 : index
          cf.assert %ok, "index out of range"
          affine.for %j = 0 to 64 { %x = memref.load %table[%r, %j] ... } }
    """

    name: ClassVar[str] = "hoist-invariants"

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Hoist in every nest."""
        for nest in sequence.nests():
            moved = 0
            for node in nest.body:
                if isinstance(node, For):
                    moved += _hoist_from_inner(node)
            if moved:
                nest.replace()
                context.decide(self.name, nest.name, "hoisted", nodes=moved)


def _hoist_from_inner(loop: For) -> int:
    """Hoist out of every loop inside of ``loop``; the number of nodes that moved."""
    moved = 0
    out: list[Node] = []
    for node in loop.body:
        if isinstance(node, For):
            moved += _hoist_from_inner(node)
            taken, kept = invariants(node)
            if any(isinstance(n, Check) for n in taken):
                node.body = kept
                moved += len(taken)
                out.extend(taken)
        out.append(node)
    loop.body = out
    return moved
