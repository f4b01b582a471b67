"""Who reads and writes each buffer: an index over a sequence, kept up to date by its user."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from collections.abc import Sequence as Items

from polyblocks.affine.model import (
    Buffer,
    GuardedStore,
    IndirectAtomic,
    IndirectLoad,
    IndirectStore,
    Nest,
    Opaque,
    Sequence,
    reads,
    walk,
    writes,
)

Item = Nest | Opaque


class Users:
    """Readers and writers by the buffer that owns the memory; views count as what they view.

    Items keep the order that they have when the index is made: one that is replaced, put where
    another one was, or dropped, does not move the others.
    """

    def __init__(self, sequence: Sequence) -> None:
        self._position: dict[Item, float] = {}
        self._touched: dict[Item, tuple[set[Buffer], set[Buffer]]] = {}
        self._readers: dict[Buffer, set[Item]] = {}
        self._writers: dict[Buffer, set[Item]] = {}
        self._at_run_time: dict[Nest, set[Buffer]] = {}
        for position, item in enumerate(sequence.items):
            self._position[item] = position
            self.refresh(item)

    def refresh(self, item: Item) -> None:
        """Take note of what an item does now."""
        self.drop(item)
        read = {b.base for b in reads(item)}
        written = {b.base for b in writes(item)}
        self._touched[item] = read, written
        for buffer in read:
            self._readers.setdefault(buffer, set()).add(item)
        for buffer in written:
            self._writers.setdefault(buffer, set()).add(item)

    def put(self, items: list[Item], place: Item) -> None:
        """Take in new items, which stand where another one stood, in this order."""
        at = self._position[place]
        after = min((p for p in self._position.values() if p > at), default=at + 1.0)
        for i, item in enumerate(items):
            self._position[item] = at + (after - at) * i / len(items)
            self.refresh(item)

    def put_before(self, items: Items[Item], place: Item) -> None:
        """Take in new items, which stand right before another one, in this order."""
        at = self._position[place]
        before = max((p for p in self._position.values() if p < at), default=at - 1.0)
        for i, item in enumerate(items):
            self._position[item] = before + (at - before) * (i + 1) / (len(items) + 1)
            self.refresh(item)

    def drop(self, item: Item) -> None:
        """Forget an item."""
        read, written = self._touched.pop(item, (set(), set()))
        for buffer in read:
            self._readers[buffer].discard(item)
        for buffer in written:
            self._writers[buffer].discard(item)
        if isinstance(item, Nest):
            self._at_run_time.pop(item, None)

    def __contains__(self, item: Item) -> bool:
        """Whether an item is there, and not dropped."""
        return item in self._touched

    def touched(self, item: Item) -> tuple[set[Buffer], set[Buffer]]:
        """The buffers that an item reads and those that it writes."""
        return self._touched[item]

    def before(self, first: Item, second: Item) -> bool:
        """Whether the first item comes before the second one."""
        return self._position[first] < self._position[second]

    def position(self, item: Item) -> float:
        """Where an item stands in the program: later ones have larger numbers."""
        return self._position[item]

    def readers(self, buffer: Buffer) -> list[Item]:
        """Who reads the buffer, in program order."""
        return sorted(self._readers.get(buffer, ()), key=self._position.__getitem__)

    def writers(self, buffer: Buffer) -> list[Item]:
        """Who writes the buffer, in program order."""
        return sorted(self._writers.get(buffer, ()), key=self._position.__getitem__)

    def is_only_accessed(self, buffer: Buffer) -> bool:
        """Whether a buffer is the program's own, and all accesses are loads and stores of nests."""
        if buffer.kind != "alloc" or buffer.outer is not None:
            return False
        return all(
            isinstance(item, Nest) and buffer not in self._indexed_at_run_time(item)
            for users in (self._readers, self._writers)
            for item in users.get(buffer, ())
        )

    def _indexed_at_run_time(self, nest: Nest) -> set[Buffer]:
        """The buffers that a nest accesses at places known at run time."""
        found = self._at_run_time.get(nest)
        if found is None:
            kinds = (IndirectLoad, IndirectStore, GuardedStore, IndirectAtomic)
            found = {n.buffer for n in walk(nest.body) if isinstance(n, kinds)}
            self._at_run_time[nest] = found
        return found

    def written_between(
        self, buffers: Iterable[Buffer], first: Item, last: Item, but: Collection[Item] = ()
    ) -> bool:
        """Whether an item between these two, none of ``but``, writes one of the buffers."""
        return self._between(self._writers, buffers, first, last, but)

    def read_between(
        self, buffers: Iterable[Buffer], first: Item, last: Item, but: Collection[Item] = ()
    ) -> bool:
        """Whether an item between these two, none of ``but``, reads one of the buffers."""
        return self._between(self._readers, buffers, first, last, but)

    def _between(
        self,
        users: dict[Buffer, set[Item]],
        buffers: Iterable[Buffer],
        first: Item,
        last: Item,
        but: Collection[Item],
    ) -> bool:
        low, high = self._position[first], self._position[last]
        return any(
            low < self._position[item] < high and item not in but
            for b in buffers
            for item in users.get(b, ())
        )
