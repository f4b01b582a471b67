"""straighten-copies: what is copied backwards is copied forwards, and read backwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.access import address, begins_and_ends_with_memory
from polyblocks.affine.analysis.reductions import ReductionNest
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    AffineAccess,
    Buffer,
    For,
    IndirectAtomic,
    IndirectLoad,
    IndirectStore,
    Load,
    Nest,
    Sequence,
    Store,
    transform_indices,
    walk,
)
from polyblocks.affine.subnests import perfect_loops
from polyblocks.affine.users import Users
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class StraightenCopiesPass(NestPass):
    """Copy an array in the order of the memory it is read from; who reads the copy turns it round.

    The weights of a transposed convolution are an example, whose windows are mirrored: vectors of
    the copy would have to be reversed, and what reads it sums up in any order.

    Before::

        affine.for %f = 0 to 8 { affine.for %k = 0 to 5 {
          %v = affine.load %w[%f, -%k + 4]
          affine.store %v, %m[%f, %k] } }
        ... affine.load %m[%f, %j]

    After::

        affine.for %f = 0 to 8 { affine.for %k = 0 to 5 {
          %v = affine.load %w[%f, %k]
          affine.store %v, %m[%f, %k] } }
        ... affine.load %m[%f, -%j + 4]
    """

    name: ClassVar[str] = "straighten-copies"

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Straighten every copy into an intermediate array."""
        users, viewed = Users(sequence), sequence.viewed()
        for buffer in sequence.buffers:
            if buffer.kind != "alloc" or buffer in viewed or buffer.base is not buffer:
                continue
            if not begins_and_ends_with_memory(buffer) or len(users.writers(buffer)) != 1:
                continue
            nests = [*users.writers(buffer), *users.readers(buffer)]
            if not all(isinstance(n, Nest) and _affine(n, buffer) for n in nests):
                continue
            self._straighten(buffer, nests, context)

    def _straighten(self, buffer: Buffer, nests: list[Any], context: Any) -> None:
        writer = nests[0]
        loops, body = perfect_loops(writer.body)
        backwards = _backwards(loops, body, buffer)
        if not backwards:
            return
        mirrored = {v: Expr(v.extent - 1, {v: -1}) for v in backwards}
        transform_indices(body, lambda e: e.substitute(mirrored))
        for nest in dict.fromkeys(nests):
            for node in walk(nest.body):
                if isinstance(node, AffineAccess) and node.buffer is buffer:
                    node.index = tuple(
                        Expr(extent - 1) - e if d in backwards.values() else e
                        for d, (e, extent) in enumerate(zip(node.index, buffer.shape, strict=True))
                    )
            if nest is not writer:
                _turn_steps(nest, buffer)
            nest.replace()
        context.decide(
            self.name,
            writer.name,
            "straightened",
            buffer=list(buffer.shape),
            dimensions=sorted(backwards.values()),
        )


def _turn_steps(nest: Nest, buffer: Buffer) -> None:
    """Let a reduction that reads a buffer backwards begin at its end, if its order is free."""
    shape = ReductionNest.of(nest)
    if shape is None or not shape.reorderable():
        return
    places = [
        address(buffer, n.index)
        for n in walk(nest.body)
        if isinstance(n, Load) and n.buffer is buffer
    ]
    turned = {
        loop.var: Expr(loop.var.extent - 1, {loop.var: -1})
        for loop in shape.reductions
        if not loop.bounded and all((p.coefficient(loop.var) or 0) < 0 for p in places)
    }
    transform_indices(nest.body, lambda e: e.substitute(turned))


def _affine(nest: Nest, buffer: Buffer) -> bool:
    """Whether a nest touches a buffer at affine places only."""
    others = (IndirectLoad, IndirectStore, IndirectAtomic)
    return not any(isinstance(n, others) and n.buffer is buffer for n in walk(nest.body))


def _backwards(loops: list[For], body: list[Any], buffer: Buffer) -> dict[Var, int]:
    """The loops of a copy that go backwards in what it reads, and which dimension they count."""
    if len(body) != 2 or any(loop.bounded or loop.inits for loop in loops):
        return {}
    load, store = body
    if not isinstance(load, Load) or not isinstance(store, Store) or store.buffer is not buffer:
        return {}
    if store.value is not load.result:
        return {}
    place = address(load.buffer, load.index)
    found: dict[Var, int] = {}
    for dimension, expr in enumerate(store.index):
        if expr.is_constant:
            continue
        (atom, factor), *others = expr.terms
        if others or factor != 1 or not isinstance(atom, Var):
            return {}
        if (place.coefficient(atom) or 0) < 0:
            found[atom] = dimension
    return found
