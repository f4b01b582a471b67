"""forward-copies: what would be copied elsewhere is made there."""

from __future__ import annotations

from collections.abc import Sequence as Items
from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.access import strides
from polyblocks.affine.analysis.boxes import overlap, touched
from polyblocks.affine.analysis.coverage import (
    digits,
    is_injective,
    iteration_at,
)
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    Access,
    AffineAccess,
    Buffer,
    For,
    IndirectAccess,
    Load,
    Nest,
    Sequence,
    Store,
    clone,
    reads,
    walk,
    writes,
)
from polyblocks.affine.rewrites.digit_loops import split_at_digits
from polyblocks.affine.rewrites.moving import moved
from polyblocks.affine.subnests import copy_of, straight_loops
from polyblocks.affine.users import Item, Users
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class ForwardCopiesPass(NestPass):
    """Nests that fill a buffer which is then copied fill the copy's destination instead.

    The copy must read the whole of the buffer, and put elements that are neighbours there next to
    each other. If the destination is in use between the first nest that fills the buffer and the
    copy, these nests move down to where the copy stands. Others that read the buffer read the
    destination, as long as that keeps what was put there. A nest that reads the old contents of
    the destination, just where it puts the new ones, works in place then: so the next state of a
    loop takes the place of the last one.

    Before (one of the parts of a concatenation)::

        affine.for %i = 0 to 8 { ... affine.store %v, %part[%i] }
        affine.for %i = 0 to 8 {
          %x = affine.load %part[%i]
          affine.store %x, %whole[%i + 24] }

    After::

        affine.for %i = 0 to 8 { ... affine.store %v, %whole[%i + 24] }
    """

    name: ClassVar[str] = "forward-copies"

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Forward every copy, until none is left that can be."""
        viewed = sequence.viewed()
        candidates = [n for n in sequence.nests() if _Copy.of(n, viewed) is not None]
        users = Users(sequence) if candidates else None
        # From the end: what a copy reads may be the destination of an earlier one.
        now: dict[Nest, Nest] = {}
        for candidate in reversed(candidates):
            nest = candidate
            while nest in now:
                nest = now[nest]
            copy = _Copy.of(nest, viewed)
            if copy is None or users is None or nest not in users:
                continue
            new = copy.forward(sequence, users)
            if new is None:
                continue
            context.decide(
                self.name,
                nest.name or "copy",
                "forwarded",
                buffer=list(copy.source.shape),
                moved=len(new),
            )
            now.update(new)


@dataclass
class _Copy:
    """A nest that copies a whole buffer.

    Attributes:
        nest: the nest.
        source: the buffer that it reads, an allocation.
        target: the buffer that it writes.
        variables: for each loop the dimension of the source that it counts through, and in
            steps of how many.
        index: the place in the target, in these variables.
    """

    nest: Nest
    source: Buffer
    target: Buffer
    variables: dict[Var, tuple[int, int]]
    index: tuple[Expr, ...]

    @classmethod
    def of(cls, nest: Nest, viewed: set[Buffer]) -> _Copy | None:
        plain = copy_of(nest.body)
        if plain is None:
            return None
        loops, load, store = plain
        source, target = load.buffer, store.buffer
        if source.kind != "alloc" or source.base is target.base:
            return None
        if not _is_linear(load.index):
            loops, load, store = _by_digits(nest)
        if target.kind not in ("alloc", "output", "carried") or viewed & {source, target}:
            return None
        variables = digits(source, load.index, [f.var for f in loops])
        if variables is None:
            return None
        if not is_injective(store.index, [f.var for f in loops]):
            return None
        if not _keeps_neighbours(variables, store, target):
            return None
        return cls(nest, source, target, variables, store.index)

    def place(self, index: Items[Expr]) -> tuple[Expr, ...]:
        """Where in the target an element of the source goes."""
        at = iteration_at(self.variables, self.source.shape, index)
        return tuple(e.substitute(at) for e in self.index)

    def forward(self, sequence: Sequence, users: Users) -> dict[Nest, Nest] | None:
        """Rewrite the nests and drop the copy; the nests that moved as what, None if refused."""
        writers = users.writers(self.source)
        readers = [r for r in users.readers(self.source) if r is not self.nest]
        repeats = [r for r in readers if self._repeats(r)]
        readers = [r for r in readers if r not in repeats]
        touching = [*writers, *(r for r in readers if r not in writers)]
        earlier = [item for item in touching if users.before(item, self.nest)]
        if not writers or not all(w in earlier for w in writers):
            return None
        update = writers[0] if len(writers) == 1 and self._updates(writers[0]) else None
        if not all(item is update or self._follows(item) for item in touching):
            return None
        if readers and len(writers) == 1 and _is_pointwise(writers[0]):
            # Inlining the producer removes the reads.
            return None
        box = touched(self.index)
        if any(item is not update and self._in_the_way(item, box) for item in earlier):
            return None
        if any(users.before(item, self.nest) for item in repeats):
            return None
        if not self._stays(users, readers, repeats):
            return None
        moving: list[Nest] = []
        if not self._unused_before(users, writers[0]):
            if not self._may_sink(users, earlier):
                return None
            moving = [item for item in earlier if isinstance(item, Nest)]
            moving.sort(key=sequence.items.index)
        for item in touching:
            assert isinstance(item, Nest)
            self._rewrite(item)
            users.refresh(item)
        for item in moving:
            sequence.items.remove(item)
        at = sequence.items.index(self.nest)
        new = {item: moved(item) for item in moving}
        sequence.items[at : at + 1] = new.values()
        for item in moving:
            users.drop(item)
        users.put(list(new.values()), self.nest)
        users.drop(self.nest)
        for item in repeats:
            sequence.items.remove(item)
            users.drop(item)
        return new

    def _repeats(self, item: Item) -> bool:
        """Whether an item copies once more what this copy brings to the same place."""
        plain = copy_of(item.body) if isinstance(item, Nest) else None
        if plain is None:
            return False
        _, load, store = plain
        if load.buffer is not self.source or store.buffer is not self.target:
            return False
        return store.index == self.place(load.index)

    def _follows(self, item: Item) -> bool:
        """Whether all accesses of an item to the source can go to the target."""
        if not isinstance(item, Nest):
            return False
        read, written = _bases(reads(item)), _bases(writes(item))
        both = {self.source, self.target.base}
        if self.target.base in read | written and both & read and both & written:
            # Iterations that read and write one buffer are hard to tell to be independent.
            return False
        same = self._same_place()
        return all(
            n.buffer is self.source
            and (same or (isinstance(n, AffineAccess) and self._stays_linear(n.index)))
            for n in walk(item.body)
            if isinstance(n, Access) and n.buffer.base is self.source
        )

    def _stays_linear(self, index: Items[Expr]) -> bool:
        """Whether no quotients and remainders come in: addresses would be computed one by one."""
        return _is_linear(self.place(index)) or not _is_linear(index)

    def _updates(self, item: Item) -> bool:
        """Whether a nest reads what the loop around carries, just where it would put the result."""
        if not isinstance(item, Nest) or self.target.kind != "carried":
            return False
        shape = straight_loops(item.body, IndirectAccess)
        if shape is None:
            return False
        loops, body = shape
        stores = [n for n in body if isinstance(n, Store)]
        if len(stores) != 1 or stores[0].buffer is not self.source:
            return False
        at = self.place(stores[0].index)
        if not is_injective(at, [f.var for f in loops]):
            return False
        # Loads come before the only store in every iteration, or what they load is stored by it.
        position = body.index(stores[0])
        return all(
            n.buffer is self.target and n.index == at and i < position
            for i, n in enumerate(body)
            if isinstance(n, Load) and n.buffer.base in (self.target.base, self.source)
        )

    def _same_place(self) -> bool:
        """Whether every element keeps its indices."""
        if self.source.shape != self.target.shape:
            return False
        plain = [Expr(0)] * len(self.source.shape)
        for variable, (dimension, factor) in self.variables.items():
            plain[dimension] += Expr(0, {variable: factor})
        return list(self.index) == plain

    def _stays(self, users: Users, readers: list[Item], repeats: list[Item]) -> bool:
        """Whether what was copied is still in the target when the last reader comes."""
        later = [r for r in readers if users.before(self.nest, r)]
        if not later:
            return True
        box = touched(self.index)
        # A later reader may itself go on to write the target.
        for item in users.writers(self.target.base):
            if item in repeats:
                continue
            behind = users.before(self.nest, item)
            if behind and not users.before(later[-1], item) and self._in_the_way(item, box):
                return False
        return True

    def _in_the_way(self, item: Item, box: Any) -> bool:
        """Whether an item touches this part of the target."""
        if not isinstance(item, Nest):
            return True
        for n in walk(item.body):
            if not isinstance(n, Access):
                continue
            if n.buffer.base is not self.target.base:
                continue
            plain = isinstance(n, AffineAccess) and n.buffer is self.target
            if not plain or overlap(touched(n.index), box):  # type: ignore[arg-type]
                return True
        return False

    def _unused_before(self, users: Users, first: Item) -> bool:
        """Whether nothing touches the place from the first writer of the source to the copy."""
        box = touched(self.index)
        base = self.target.base
        return not any(
            users.before(first, item) and users.before(item, self.nest)
            for item in {*users.readers(base), *users.writers(base)}
            if self._in_the_way(item, box)
        )

    def _may_sink(self, users: Users, moving: list[Item]) -> bool:
        """Whether these nests may run right before the copy, in the same order."""
        for nest in moving:
            needs = _bases(reads(nest)) - {self.source}
            makes = _bases(writes(nest)) - {self.source}
            for buffer in needs | makes:
                between = {*users.writers(buffer)}
                if buffer in makes:
                    between |= {*users.readers(buffer)}
                for item in between:
                    inside = users.before(nest, item) and users.before(item, self.nest)
                    if inside and item not in moving:
                        return False
        return True

    def _rewrite(self, nest: Nest) -> None:
        for n in walk(nest.body):
            if isinstance(n, Access) and n.buffer is self.source:
                n.buffer = self.target
                if isinstance(n, AffineAccess):
                    n.index = self.place(n.index)
        nest.replace()


def _by_digits(nest: Nest) -> tuple[list[For], Load, Store]:
    """The loops, the load and the store of a copy that counts the digits of loops by themselves."""
    body = clone(nest.body, {}, {})
    split_at_digits([n for n in walk(body) if isinstance(n, For)])
    found = copy_of(body)
    assert found is not None
    return found


def _keeps_neighbours(variables: dict[Var, tuple[int, int]], store: Store, target: Buffer) -> bool:
    """Whether neighbours in the source's last dimension are neighbours in the target."""
    last = max((dimension for dimension, _ in variables.values()), default=None)
    if last is None:
        return True
    (inner,) = (v for v, place in variables.items() if place == (last, 1))
    pairs = zip(store.index, strides(target), strict=True)
    step: int | None = 0
    for expr, stride in pairs:
        factor = expr.coefficient(inner)
        step = None if factor is None or step is None else step + factor * stride
    return step == 1


def _is_linear(index: Items[Expr]) -> bool:
    return all(isinstance(atom, Var) for expr in index for atom, _ in expr.terms)


def _is_pointwise(item: Item) -> bool:
    if not isinstance(item, Nest):
        return False
    return straight_loops(item.body, bounded=True) is not None


def _bases(buffers: Any) -> set[Buffer]:
    return {b.base for b in buffers}
