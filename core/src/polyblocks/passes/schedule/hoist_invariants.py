"""hoist-invariants: run-time indices and their checks are computed once, outside of inner loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.model import (
    Alloca,
    AnyStore,
    Buffer,
    Check,
    For,
    Index,
    IndirectLoad,
    Load,
    Node,
    Op,
    Sequence,
    Value,
    walk,
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


def invariants(loop: For) -> tuple[list[Node], list[Node]]:
    """The nodes of a loop's body that do not depend on the iteration, and the others.

    The loop must run at least once, so that the moved code runs no more often than before; one
    whose bounds depend on outer loops may not, and is left alone.
    """
    if loop.bounded or loop.var.extent == 0:
        return [], loop.body
    varying: set[Value] = set(loop.arguments)
    written: set[Buffer] = {n.buffer.base for n in walk(loop.body) if isinstance(n, AnyStore)}
    local = {n.buffer for n in walk(loop.body) if isinstance(n, Alloca)}
    taken: list[Node] = []
    kept: list[Node] = []
    checked = True
    for node in loop.body:
        fixed = not any(v in varying for v in node.uses)
        if isinstance(node, (For, AnyStore, Alloca)):
            fixed = False
        elif isinstance(node, Index):
            fixed = loop.var not in set(node.expr.variables())
        elif isinstance(node, Load):
            fixed = all(loop.var not in set(e.variables()) for e in (*node.index, *node.where))
            fixed = fixed and node.buffer.base not in written and node.buffer not in local
        elif isinstance(node, IndirectLoad):
            # A check that stays inside may guard this index.
            fixed = fixed and checked and node.buffer.base not in written
        elif isinstance(node, Op):
            # A division may be behind a check as well.
            fixed = fixed and (checked or "div" not in node.name and "rem" not in node.name)
        if fixed:
            taken.append(node)
            continue
        if isinstance(node, Check):
            checked = False
        varying.update(node.defines)
        kept.append(node)
    return taken, kept
