"""mark-padding: loads and stores say which zeros are an operation's own padding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar

from polyblocks.affine.analysis.boxes import Box, covered, hull, reach, with_loops
from polyblocks.affine.analysis.dataflow import ops_of
from polyblocks.affine.analysis.reductions import EXTENSIONS
from polyblocks.affine.model import (
    Buffer,
    For,
    IndirectAtomic,
    IndirectStore,
    Load,
    Nest,
    Node,
    Op,
    Sequence,
    Store,
    Value,
    walk,
)
from polyblocks.affine.padding.margins import zeros_in
from polyblocks.affine.padding.padded import Padded
from polyblocks.affine.users import Users
from polyblocks.attributes import PADDED_ATTRIBUTE
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class MarkPaddingPass(NestPass):
    """Give every padded buffer a number, which the loads and stores of its zeros carry.

    Frontends say of a product how its operation has padded the array of the first factor
    (:class:`polyblocks.affine.padding.padded.Padded`). Buffers change their shape and contents
    later; a load stays one of a convolution, and a store of zeros one of its padding.

    Nothing is marked where the buffer does not hold what the frontend says: zeros that a program
    put into a convolution's padding count as the program's.

    Before::

        affine.for %i = 0 to 10 { affine.store %zero, %p[%i] }
        affine.for %i = 0 to 8 { ... affine.store %v, %p[%i + 1] }
        %a = affine.load %p[%i]
        %t = arith.mulf %a, %b {polyblocks.padded = {first = array<i64: 1>, size = array<i64: 8>,
                                                     step = array<i64: 1>}}

    After::

        affine.for %i = 0 to 10 {
          affine.store %zero, %p[%i] {polyblocks.padding = array<i64: 1>} }
        affine.for %i = 0 to 8 { ... affine.store %v, %p[%i + 1] }
        %a = affine.load %p[%i] {polyblocks.padding = array<i64: 1>}
        %t = arith.mulf %a, %b
    """

    name: ClassVar[str] = "mark-padding"
    needs: ClassVar[frozenset[str]] = frozenset({facts.NESTS, facts.UNFUSED})
    establishes: ClassVar[frozenset[str]] = frozenset({facts.PADDING})

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Mark the paddings of every product that has some."""
        padded = {nest: _padded_loads(nest.body) for nest in sequence.nests()}
        numbers: dict[tuple[Buffer, Padded], frozenset[int]] = {}
        users = Users(sequence)
        unused: Iterator[int] | None = None
        for nest, loads in padded.items():
            for load, what in loads:
                key = load.buffer, what
                if key not in numbers:
                    numbers[key] = frozenset()
                    zeros = _zeros(load.buffer, what, users)
                    if zeros:
                        unused = unused or _unused_numbers(sequence)
                        numbers[key] = frozenset((next(unused),))
                        for writer, store in zeros:
                            store.padding |= numbers[key]
                            writer.replace()
                load.padding |= numbers[key]
            if loads:
                nest.replace()


def _padded_loads(nodes: list[Node]) -> list[tuple[Load, Padded]]:
    """The loads of padded arrays, with what frontends say of them, which is taken off."""
    found: list[tuple[Load, Padded]] = []
    makers = {n.result: n for n in nodes if isinstance(n, Load)}
    ops: dict[Value, Op] | None = None
    for node in nodes:
        if isinstance(node, For):
            found += _padded_loads(node.body)
        if not isinstance(node, Op) or PADDED_ATTRIBUTE not in node.attributes:
            continue
        ops = ops if ops is not None else ops_of(nodes)
        what = Padded.of(node.attributes[PADDED_ATTRIBUTE])
        node.attributes = {k: v for k, v in node.attributes.items() if k != PADDED_ATTRIBUTE}
        factor = node.operands[0]
        while factor in ops and ops[factor].name in EXTENSIONS:
            (factor,) = ops[factor].operands
        load = makers.get(factor)
        if load is not None and len(what.first) == len(load.buffer.shape):
            found.append((load, what))
    return found


def _zeros(buffer: Buffer, what: Padded, users: Users) -> list[tuple[Nest, Store]]:
    """The stores of the zeros of a padding; none if there are other zeros, or this is unknown."""
    if buffer.base is not buffer or buffer.outer is not None:
        return []
    zeros: list[tuple[Nest, Store]] = []
    inside: Box | None = None
    for nest in users.writers(buffer):
        if not isinstance(nest, Nest):
            return []
        if any(isinstance(n, (IndirectStore, IndirectAtomic)) for n in walk(nest.body)):
            return []
        constants = zeros_in(nest)
        for store, loops in with_loops(nest.body):
            if not isinstance(store, Store) or store.buffer is not buffer:
                continue
            if store.value in constants and not _holds(what, covered(store.index, loops)):
                zeros.append((nest, store))
                continue
            box = tuple(reach(e, loops) for e in store.index)
            inside = box if inside is None else hull(inside, box)
    return zeros if inside == what.box else []


def _holds(what: Padded, box: Box | None) -> bool:
    """Whether all of a box are elements; also if the box is unknown."""
    return box is None or all(
        low <= begin and end <= high and (step == 1 or end - begin == 1)
        for (begin, end), (low, high), step in zip(box, what.box, what.step, strict=True)
    )


def _unused_numbers(sequence: Sequence) -> Iterator[int]:
    """Numbers above those of all paddings that the program has now, in order."""
    whole = sequence
    while whole.around is not None:
        whole = whole.around
    used = (
        number
        for part in whole.all()
        for nest in part.nests()
        for node in walk(nest.body)
        if isinstance(node, (Load, Store))
        for number in node.padding
    )
    return count(max(used, default=0) + 1)
