"""merge-margins: an array and its copies with zeros around are one buffer with a margin."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from polyblocks.affine.analysis.boxes import Box, covered, difference, with_loops
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    AffineAccess,
    Buffer,
    Load,
    Nest,
    Node,
    Op,
    Sequence,
    Store,
    Value,
    around,
    walk,
)
from polyblocks.affine.naming.names import name_nests
from polyblocks.affine.padding.margins import Margin, margins_of, zeros_in
from polyblocks.affine.rewrites.moving import like
from polyblocks.affine.subnests import copy_of
from polyblocks.affine.users import Users
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass

#: Bytes to which rows are rounded up, and what is in front of their first element: a line.
LINE = 64


@dataclass(frozen=True)
class MergeMarginsPass(NestPass):
    """One padded buffer replaces an array and its padded copies.

    A stencil that reads zeros outside of an array has a padded copy of it for each direction, or
    one for all. The margins differ, the interior is the same: a buffer with all margins is all
    of them. The array's producer stores there, unless it is an argument or a result.

    Before, with zeros in ``%p[0]``, ``%p[9]``, ``%q[0]`` and ``%q[1]``::

        affine.for %i = 0 to 8 { ... affine.store %v, %x[%i] }
        affine.for %i = 0 to 8 { %0 = affine.load %x[%i] ... affine.store %0, %p[%i + 1] }
        affine.for %i = 0 to 8 { %0 = affine.load %x[%i] ... affine.store %0, %q[%i + 2] }
        ... affine.load %x[%i] ... affine.load %p[%i] ... affine.load %q[%i]

    After, with ``%p`` of 17 elements more in front::

        affine.for %i = 0 to 8 { ... affine.store %v, %p[%i + 16] }
        ... affine.load %p[%i + 16] ... affine.load %p[%i + 15] ... affine.load %p[%i + 14]
    """

    name: ClassVar[str] = "merge-margins"
    needs: ClassVar[frozenset[str]] = frozenset({facts.NESTS, facts.KINDS, facts.UNTILED})
    breaks: ClassVar[frozenset[str]] = frozenset({facts.PADDING, facts.UNFUSED})

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Merge the copies of every array that has some."""
        users = Users(sequence)
        viewed = sequence.viewed()
        by_source: dict[Buffer, list[_Padded]] = {}
        for buffer, margin in margins_of(sequence).items():
            padded = None if margin.cleared else _Padded.of(buffer, margin, users)
            if padded is not None and not viewed & {buffer, padded.source}:
                by_source.setdefault(padded.source, []).append(padded)
        merged = False
        for source, copies in by_source.items():
            own = users.is_only_accessed(source)
            if len(copies) < 2 and not (own and len(users.readers(source)) > 1):
                continue
            if not _are_told_apart(copies, users):
                continue
            whole = _merge(source, copies, own, sequence, users)
            context.decide(
                self.name,
                copies[0].copy.name,
                "margins merged",
                buffer=list(source.shape),
                padded=list(whole.shape),
                copies=len(copies) - (not own),
            )
            merged = True
        if merged:
            name_nests(self.name, sequence, context)


@dataclass
class _Padded:
    """A copy of an array with zeros around.

    Attributes:
        buffer: the copy.
        source: what it is a copy of.
        low: elements of the margin in front, by dimension.
        copy: the nest that copies.
        zeros: the nests that make the margin.
        zero: the constant.
        margin: what is around.
    """

    buffer: Buffer
    source: Buffer
    low: tuple[int, ...]
    copy: Nest
    zeros: list[Nest]
    zero: Op
    margin: Margin

    @classmethod
    def of(cls, buffer: Buffer, margin: Margin, users: Users) -> _Padded | None:
        """The padded buffer as a copy; None if it is not a copy."""
        inside = margin.inside
        copies: list[Nest] = []
        zeros: list[Nest] = []
        filled: list[Box] = []
        for nest in users.writers(buffer):
            if not isinstance(nest, Nest):
                return None
            stores = [(n, loops) for n, loops in with_loops(nest.body) if isinstance(n, Store)]
            constants = zeros_in(nest)
            if any(n.value not in constants or n.buffer is not buffer for n, _ in stores):
                copies.append(nest)
                continue
            zeros.append(nest)
            for store, loops in stores:
                box = covered(store.index, loops)
                if box is None:
                    return None
                filled.append(box)
        if len(copies) != 1 or not zeros or not users.is_only_accessed(buffer):
            return None
        source = _copied(copies[0], inside)
        if source is None or source.element != buffer.element:
            return None
        if difference(tuple((0, n) for n in buffer.shape), [inside, *filled]):
            return None
        readers = users.readers(buffer)
        if readers and not all(users.before(n, readers[0]) for n in (copies[0], *zeros)):
            return None
        writers = users.writers(source)
        if writers and users.before(copies[0], writers[-1]):
            return None
        zero = next(n for n in walk(zeros[0].body) if isinstance(n, Op))
        low = tuple(b for b, _ in inside)
        return cls(buffer, source, low, copies[0], zeros, zero, margin)


def _copied(nest: Nest, inside: Box) -> Buffer | None:
    """The array that a nest copies, as a whole, into a box."""
    copy = copy_of(nest.body)
    if copy is None or len(copy[1].index) != len(copy[2].index):
        return None
    loops, load, store = copy
    apart = [a - b for a, b in zip(store.index, load.index, strict=True)]
    if [a.const if a.is_constant else None for a in apart] != [low for low, _ in inside]:
        return None
    shape = tuple(high - low for low, high in inside)
    box = covered(load.index, loops)
    if load.buffer.shape != shape or box != tuple((0, n) for n in shape):
        return None
    return load.buffer


def _merge(
    source: Buffer, copies: list[_Padded], own: bool, sequence: Sequence, users: Users
) -> Buffer:
    """Replace all copies by one buffer, and the array too if it is the program's own."""
    unit = max(LINE // source.bytes_per_element, 1)
    low = [max(c.low[d] for c in copies) for d in range(len(source.shape))]
    high = [
        max(c.buffer.shape[d] - c.low[d] - n for c in copies) for d, n in enumerate(source.shape)
    ]
    if low[-1] or high[-1]:
        # Rows begin at a line, and so does what is inside.
        low[-1] = -(-low[-1] // unit) * unit
        high[-1] += -(low[-1] + source.shape[-1] + high[-1]) % unit
    shape = tuple(b + n + a for b, n, a in zip(low, source.shape, high, strict=True))
    size = source.bytes_per_element
    whole = Buffer(shape, source.element, "alloc", bytes_per_element=size)
    moved = {c.buffer: tuple(b - a for a, b in zip(c.low, low, strict=True)) for c in copies}
    if own:
        moved[source] = tuple(low)
    first = min((c.copy for c in copies), key=users.position)
    kept = None if own else first
    dropped = {n for c in copies for n in (c.copy, *c.zeros) if n is not kept}
    touching = {n for b in moved for n in (*users.readers(b), *users.writers(b))} - dropped
    for item in touching:
        assert isinstance(item, Nest)
        for node in walk(item.body):
            if isinstance(node, AffineAccess) and node.buffer in moved:
                step = moved[node.buffer]
                node.index = tuple(e + s for e, s in zip(node.index, step, strict=True))
                node.buffer = whole
        item.replace()
    at = sequence.items.index(first)
    sequence.items[at:at] = _margin(whole, copies, low)
    sequence.items[:] = [item for item in sequence.items if item not in dropped]
    for item in dropped:
        users.drop(item)
    for item in touching:
        users.refresh(item)
    return whole


def _margin(whole: Buffer, copies: list[_Padded], low: list[int]) -> list[Nest]:
    """Nests that store the zeros that some copy has.

    An operation reads zeros of its own in its copy (:func:`_are_told_apart`), so each may be one of
    all paddings.
    """
    location = _location(copies)
    padding = frozenset[int]().union(*(each.margin.padding for each in copies))
    inside = tuple((b, b + n) for b, n in zip(low, copies[0].source.shape, strict=True))
    done: list[Box] = [inside]
    nests: list[Nest] = []
    for each in copies:
        begin = [b - a for a, b in zip(each.low, low, strict=True)]
        box = tuple((b, b + n) for b, n in zip(begin, each.buffer.shape, strict=True))
        for part in difference(box, done):
            variables = [Var(end - first) for first, end in part]
            index = tuple(
                Expr.of(v) + first if v.extent != 1 else Expr(first)
                for v, (first, _) in zip(variables, part, strict=True)
            )
            value = Value(whole.element)
            zero = replace(each.zero, results=[value])
            body: list[Node] = [zero, Store(value, whole, index, location, padding=padding)]
            nests.append(like(each.zeros[0], around(variables, body)))
        done.append(box)
    return nests


def _location(copies: list[_Padded]) -> Any:
    """Where the zeros of all copies come from; None if that is unknown."""
    places = [place for each in copies for place in each.margin.locations]
    return type(places[0]).fused(places) if places else None


def _are_told_apart(copies: list[_Padded], users: Users) -> bool:
    """Whether no operation that stores the zeros of a copy reads another one's zeros.

    Products with its own are left out; in one buffer, those of others would be as well.
    """
    stored = frozenset[int]().union(*(each.margin.padding for each in copies))
    return not any(
        isinstance(node, Load)
        and node.buffer is each.buffer
        and node.padding & (stored - each.margin.padding)
        for each in copies
        for nest in users.readers(each.buffer)
        if isinstance(nest, Nest)
        for node in walk(nest.body)
    )
