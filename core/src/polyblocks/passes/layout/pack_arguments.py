"""pack-arguments: arguments that are read across their order all the time are copied first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.access import strides
from polyblocks.affine.analysis.facts import NestFacts
from polyblocks.affine.buffers.layout_votes import Ballot, walks
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    Buffer,
    For,
    IndirectLoad,
    Load,
    Nest,
    Node,
    Sequence,
    Store,
    Value,
    around,
    walk,
)
from polyblocks.affine.preparation import Preparation
from polyblocks.affine.rewrites.permuting import permuted, reorder
from polyblocks.affine.subnests import change_subnests
from polyblocks.affine.users import Users
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class PackArgumentsPass(NestPass):
    """Copy small arguments whose neighbours are not those that a nest reads one after the other.

    The weights of a depthwise convolution of images with channels last are an example: channels are
    lanes, and one channel's weights lie together. A copy in the other order costs little where the
    nest reads each element many times.

    Before::

        affine.for %i .. { affine.for %c = 0 to 96 {
          ... affine.load %w[%c, 0] : memref<96x49xf32> ... affine.load %x[%i, %c] ... } }

    After::

        affine.for %k = 0 to 49 { affine.for %c = 0 to 96 {
          ... affine.load %w[%c, %k] ... affine.store ... %p[%k, %c] : memref<49x96xf32> } }
        affine.for %i .. { affine.for %c = 0 to 96 {
          ... affine.load %p[0, %c] ... affine.load %x[%i, %c] ... } }
    """

    name: ClassVar[str] = "pack-arguments"
    #: Bytes that others move in order over those of an argument, from which on it is copied.
    often: float = 8.0
    #: Votes for a dimension over those for the last one, from which on it comes last.
    majority: float = 1.5

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Pack for every nest and sub-nest that is no contraction, which packs for itself."""
        users, viewed = Users(sequence), sequence.viewed()
        preparation = Preparation.of(sequence)
        ballot = Ballot(set())
        copies: dict[tuple[Buffer, tuple[int, ...]], Buffer] = {}
        for nest in sequence.nests():

            def change(nodes: list[Node], outer: list[For], nest: Nest = nest) -> list[Node] | None:
                if NestFacts(nodes).contraction is not None:
                    return None
                found = list(walks(nodes, [loop.var for loop in outer]))
                inside = list(walk(nodes))
                indirect = {n.buffer for n in inside if isinstance(n, IndirectLoad)}
                packed = False
                for buffer in dict.fromkeys(n.buffer for n in inside if isinstance(n, Load)):
                    lasts = preparation is not None and preparation.lasts(buffer)
                    known = buffer.kind in ("input", "global") and not users.writers(buffer)
                    if not (known or lasts) or buffer.base is not buffer:
                        continue
                    if buffer in viewed | indirect:
                        continue
                    order = self._order(buffer, ballot.votes_of(buffer, found), lasts)
                    if order is None:
                        continue
                    key = buffer, tuple(order)
                    if key not in copies:
                        copies[key] = permuted(buffer, order)
                        copy = _copy(buffer, copies[key], order)
                        name = f"{nest.name}_packed"
                        if preparation is not None and lasts and buffer.kind != "global":
                            preparation.keep(copies[key])
                            preparation.append(copy.body, nest, name, "copy")
                        else:
                            sequence.buffers.append(copies[key])
                            copy.name, copy.kind, copy.sources = name, "copy", nest.sources
                            sequence.items.insert(sequence.items.index(nest), copy)
                        context.decide(
                            self.name, nest.name, "packed", buffer=list(buffer.shape), order=order
                        )
                    reorder(nodes, buffer, copies[key], order)
                    packed = True
                return nodes if packed else None

            change_subnests(nest, change)

    def _order(self, buffer: Buffer, votes: list[int], lasts: bool) -> list[int] | None:
        """The order of dimensions in which a copy pays; None for the argument's own.

        That of what lasts from call to call is made once, and pays sooner or later.
        """
        if len(votes) < 2:
            return None
        steps = strides(buffer)
        best = max(range(len(votes)), key=lambda d: votes[d])
        last = min(range(len(votes)), key=lambda d: (steps[d], -d))
        least = 0.0 if lasts else self.often * buffer.nbytes
        if steps[best] == 1 or votes[best] < max(least, 1):
            return None
        if votes[best] <= self.majority * votes[last]:
            return None
        return [*(d for d in range(len(votes)) if d != best), best]


def _copy(source: Buffer, target: Buffer, order: list[int]) -> Nest:
    loops = [Var(extent) for extent in source.shape]
    index = tuple(Expr.of(v) for v in loops)
    value = Value(source.element)
    moved = tuple(index[d] for d in order)
    body: list[Node] = [Load(value, source, index), Store(value, target, moved)]
    return Nest(around([loops[d] for d in order], body), [], changed=True)
