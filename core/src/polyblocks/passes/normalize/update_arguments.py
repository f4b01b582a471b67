"""update-arguments: a part that is copied, updated and copied back is updated where it lies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.analysis.boxes import Box, overlap, touched
from polyblocks.affine.analysis.coverage import digits, iteration_at
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    Access,
    AffineAccess,
    Buffer,
    For,
    Index,
    IndirectAccess,
    Load,
    Nest,
    Node,
    Sequence,
    Store,
    Value,
)
from polyblocks.affine.subnests import copy_of
from polyblocks.affine.users import Item, Users
from polyblocks.mlir import ir
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class UpdateArgumentsPass(NestPass):
    """Let a copy of an array, or of a box of it, that is copied back in the end live in the array.

    An update of an argument computes the new contents in a buffer of its own, since the argument
    may be read until then. Where few elements change, as in a cache of keys to which a step adds
    one, nearly all that moves are these copies.

    All that touches the copy stands between the two, or reads behind them; from the first change
    on nothing else touches the box, so that nothing sees it too early.

    Before::

        affine.for %i = 0 to 64 { %v = affine.load %cache[%i]  affine.store %v, %copy[%i] }
        memref.store %key, %copy[%place]
        affine.for %i = 0 to 64 { %k = affine.load %copy[%i] ... }
        affine.for %i = 0 to 64 { %v = affine.load %copy[%i]  affine.store %v, %cache[%i] }

    After::

        memref.store %key, %cache[%place]
        affine.for %i = 0 to 64 { %k = affine.load %cache[%i] ... }
    """

    name: ClassVar[str] = "update-arguments"

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Drop every pair of copies that can be."""
        backs = [n for n in sequence.nests() if _Moved.of(n) is not None]
        users = Users(sequence) if backs else None
        # From the end: a box of what is copied back may itself be copied back before.
        for back in reversed(backs):
            found = _RoundTrip.of(back, sequence, users) if users is not None else None
            if users is None or found is None or not found.is_unseen(users):
                continue
            found.drop(sequence, users)
            context.decide(
                self.name,
                back.name or "copy",
                "updated where it lies",
                buffer=list(found.copy.shape),
            )


@dataclass
class _Moved:
    """A nest that copies between the whole of a buffer and a box of another one.

    Attributes:
        load: what it reads.
        store: what it writes.
        variables: of its loops.
    """

    load: Load
    store: Store
    variables: list[Var]

    @classmethod
    def of(cls, nest: Nest) -> _Moved | None:
        plain = copy_of(nest.body)
        if plain is None or plain[1].buffer.base is plain[2].buffer.base:
            return None
        loops, load, store = plain
        return cls(load, store, [loop.var for loop in loops])

    def place(self, whole: AffineAccess, other: AffineAccess) -> tuple[_Shift, ...] | None:
        """Where elements of the whole one are in the other one."""
        counts = digits(whole.buffer, whole.index, self.variables)
        if counts is None:
            return None
        dims = [Var(extent) for extent in whole.buffer.shape]
        at = iteration_at(counts, whole.buffer.shape, [Expr.of(v) for v in dims])
        place = [_Shift.of(e.substitute(at), dims) for e in other.index]
        kept = [s.dim for s in place if s is not None and s.dim is not None]
        left = [i for i, v in enumerate(dims) if v.extent != 1 and i not in kept]
        if None in place or left or kept != sorted(set(kept)):
            return None
        return tuple(s for s in place if s is not None)


@dataclass(frozen=True)
class _Shift:
    """The place in a dimension: that in a dimension of another buffer (None: 0), plus a number."""

    dim: int | None
    by: int

    @classmethod
    def of(cls, expr: Expr, dims: list[Var]) -> _Shift | None:
        if expr.is_constant:
            return cls(None, expr.const)
        if len(expr.terms) != 1 or expr.terms[0][1] != 1 or expr.terms[0][0] not in dims:
            return None
        return cls(dims.index(expr.terms[0][0]), expr.const)  # type: ignore[arg-type]

    def expr(self, index: tuple[Expr, ...]) -> Expr:
        """The place for an affine index."""
        return Expr(self.by) if self.dim is None else index[self.dim] + self.by


@dataclass
class _RoundTrip:
    """A box of an array that is copied, and copied back.

    Attributes:
        there: the nest that copies it.
        taken: the nest that takes what is copied back: this, or a copy for it.
        back: the nest that copies it back.
        array: what has the box.
        copy: the copy.
        place: where elements of the copy are in the array, by dimension of this.
        views: of the copy; then it has the type of the array.
    """

    there: Nest
    taken: Nest
    back: Nest
    array: Buffer
    copy: Buffer
    place: tuple[_Shift, ...]
    views: list[Buffer]

    @classmethod
    def of(cls, back: Nest, sequence: Sequence, users: Users) -> _RoundTrip | None:
        moved = _Moved.of(back)
        if moved is None or back not in users:
            return None
        array = moved.store.buffer
        taken = _taken(back, moved.load.buffer, sequence, users)
        last = _Moved.of(taken)
        assert last is not None
        copy = last.load.buffer
        if copy.kind != "alloc" or copy.outer is not None or array.kind == "other":
            return None
        if copy.element != array.element:
            return None
        there = users.writers(copy)[:1]
        before = _Moved.of(there[0]) if there and isinstance(there[0], Nest) else None
        if before is None or before.load.buffer is not array or before.store.buffer is not copy:
            return None
        place = moved.place(moved.load, moved.store)
        if place is None or place != before.place(before.store, before.load):
            return None
        views = _views(copy, sequence)
        if views and (array.value is None or copy.value.type != array.value.type):
            return None
        # Places known at run time stay as they are.
        shifted = any(s.dim is not None and s.by for s in place)
        if shifted and not users.is_only_accessed(copy):
            return None
        first = there[0]
        assert isinstance(first, Nest)
        return cls(first, taken, back, array, copy, place, views)

    def is_unseen(self, users: Users) -> bool:
        """Whether nothing else touches the box from the first change to the copy back."""
        changes = [item for item in users.writers(self.copy) if item not in self._copies(users)]
        readers = users.readers(self.copy)
        touching = [*changes, *readers]
        if not all(isinstance(item, Nest) for item in touching):
            return False
        if any(users.before(item, self.there) for item in touching):
            return False
        if any(users.before(self.taken, item) for item in changes):
            return False
        last = max((users.position(item) for item in readers), default=0.0)
        box = touched([s.expr(_whole(self.copy)) for s in self.place])
        for item in {*users.readers(self.array), *users.writers(self.array)}:
            if item in self._copies(users) or item is self.back or users.before(item, self.there):
                continue
            loads, stores = _touches(item, self.array, box)
            changed = changes and not users.before(item, changes[0])
            if loads and changed and users.before(item, self.back):
                return False
            if stores and (users.before(item, self.back) or users.position(item) <= last):
                return False
        return True

    def _copies(self, users: Users) -> list[Nest]:
        """The nest that copies the box, and those behind it that copy parts of it once more."""
        found = [self.there]
        for item in users.writers(self.copy)[1:]:
            plain = copy_of(item.body) if isinstance(item, Nest) else None
            if plain is None or plain[1].buffer is not self.array:
                break
            _, load, store = plain
            same = tuple(s.expr(store.index) for s in self.place)
            if store.buffer is not self.copy or load.index != same:
                break
            assert isinstance(item, Nest)
            found.append(item)
        return found

    def drop(self, sequence: Sequence, users: Users) -> None:
        """Let all accesses to the copy go to the array."""
        for nest in dict.fromkeys((*self._copies(users), self.taken, self.back)):
            sequence.items.remove(nest)
            users.drop(nest)
        for item in {*users.readers(self.copy), *users.writers(self.copy)}:
            assert isinstance(item, Nest)
            item.replace(self._moved(item.body))
            users.refresh(item)
        for view in self.views:
            if view.viewed is not self.copy:
                continue
            view.viewed = self.array
            operation = view.value.owner
            for number, operand in enumerate(operation.operands):
                if operand == self.copy.value:
                    operation.operands[number] = self.array.value

    def _moved(self, nodes: list[Node]) -> list[Node]:
        """Nodes, with the accesses to the copy at their place in the array."""
        moved: list[Node] = []
        for node in nodes:
            if isinstance(node, For):
                node.body = self._moved(node.body)
            elif isinstance(node, Access) and node.buffer is self.copy:
                moved += self._put(node)
            moved.append(node)
        return moved

    def _put(self, node: Access) -> list[Node]:
        """Let an access be of the array; the numbers that it needs before it."""
        node.buffer = self.array
        if isinstance(node, AffineAccess):
            node.index = tuple(s.expr(node.index) for s in self.place)
        if not isinstance(node, IndirectAccess):
            return []
        numbers = {s.by: Value(ir.IndexType.get()) for s in self.place if s.dim is None}
        node.index = [numbers[s.by] if s.dim is None else node.index[s.dim] for s in self.place]
        return [Index(value, Expr(by)) for by, value in numbers.items()]


def _taken(back: Nest, buffer: Buffer, sequence: Sequence, users: Users) -> Nest:
    """The copy into a buffer that has no other users than the one that copies it on; or this."""
    writers = users.writers(buffer)
    if len(writers) != 1 or users.readers(buffer) != [back] or _views(buffer, sequence):
        return back
    (only,) = writers
    moved = _Moved.of(only) if isinstance(only, Nest) else None
    if moved is None or moved.load.buffer.kind != "alloc" or buffer.kind != "alloc":
        return back
    same = tuple(_Shift(None if n == 1 else d, 0) for d, n in enumerate(buffer.shape))
    is_whole = moved.load.buffer.shape == buffer.shape
    assert isinstance(only, Nest)
    return only if is_whole and moved.place(moved.load, moved.store) == same else back


def _views(buffer: Buffer, sequence: Sequence) -> list[Buffer]:
    """The views of a buffer."""
    return [b for b in sequence.buffers if b is not buffer and b.base is buffer]


def _whole(buffer: Buffer) -> tuple[Expr, ...]:
    """An index of all elements."""
    return tuple(Expr.of(Var(extent)) for extent in buffer.shape)


def _touches(item: Item, array: Buffer, box: Box) -> tuple[bool, bool]:
    """Whether an item may load from a box of an array, and whether it may store to it."""
    if not isinstance(item, Nest):
        return True, True
    found = [
        node
        for node in item.touching(array)
        if not isinstance(node, AffineAccess)
        or node.buffer is not array
        or overlap(touched(node.index), box)
    ]
    return any(n.reads for n in found), any(n.writes for n in found)
