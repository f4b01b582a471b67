"""Traffic that the loops of a nest wait for, per border of the memory hierarchy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from polyblocks.affine.access import strides
from polyblocks.affine.analysis.access_boxes import Group
from polyblocks.affine.analysis.footprints import Level, Touched
from polyblocks.affine.cost.constants import ANY_ORDER, ANY_ROW_START, LONG_RUN
from polyblocks.affine.expr import Var
from polyblocks.affine.model import Buffer


@dataclass
class Moved:
    """Bytes that the accesses of a loop move across a border, all iterations together.

    Attributes:
        fetched: towards the core.
        written: away from it, through the caches.
        passed: the same past the caches, to the main memory.
    """

    fetched: float = 0.0
    written: float = 0.0
    passed: float = 0.0

    def add(self, other: Moved, times: float = 1.0, passing: float | None = None) -> None:
        """Add another one's bytes, times a factor; ``passing`` is that of those past the caches."""
        self.fetched += times * other.fetched
        self.written += times * other.written
        self.passed += (times if passing is None else passing) * other.passed


def fetched(touched: Touched) -> int:
    """Bytes that come from behind a border: a line comes before it is stored to."""
    return touched.read_lines if touched.passes else touched.resident


def traffic_of_loops(
    root: Level, capacity: int, part: Callable[[Buffer], float], line: int = 0
) -> dict[Level, Moved]:
    """Traffic behind a cache, as :meth:`Level.traffic`, by the loops that wait for it.

    Data that stays in the cache is fetched by the first loop that touches it, and written back
    behind the last one that stores to it.

    Args:
        root: of a nest.
        capacity: bytes of the cache.
        part: of a buffer, that comes from behind the border; stores past the caches always do.
        line: bytes of a line, if those that are fetched from anywhere take more time than those in
            order, as from the main memory; they count as more bytes then.
    """
    parts: dict[Level, Moved] = {}
    for level, buffer, moved in _moved(root, capacity):
        if line:
            moved.fetched *= _disorder(level, buffer, line)
        if (share := part(buffer)) or moved.passed:
            parts.setdefault(level, Moved()).add(moved, share, 1.0)
    return parts


def _disorder(level: Level, buffer: Buffer, line: int) -> float:
    """Bytes in order that take the time of one that a loop fetches from a buffer."""
    rows = [_row(group, line) for group in level.groups if group.buffer is buffer]
    return 1.0 if not rows or 0 in rows else ANY_ORDER + ANY_ROW_START / min(rows)


def _row(group: Group, line: int) -> int:
    """Bytes in order that are found at run time only, together; 0 if all are near each other."""
    dimensions = zip(group.terms, strides(group.buffer), group.buffer.shape, strict=True)
    changing = [
        level
        for terms, step, size in dimensions
        if step * size * group.buffer.bytes_per_element > LONG_RUN
        for atom, _ in terms
        if isinstance(atom, Var)
        for level in group.unknown.get(atom, ())
    ]
    if group.write or not changing:
        return 0
    innermost = min(changing, key=lambda level: sum(1 for _ in level.walk()))
    row = innermost.once[group.buffer]
    return row.read_lines if row.read_lines <= row.read + 2 * line else line


def _moved(level: Level, capacity: int) -> Iterator[tuple[Level, Buffer, Moved]]:
    """Bytes by loop and buffer, for one iteration of the loops around."""
    if level.resident() <= capacity or not level.inner:
        yield from _once(level)
        return
    met = set()
    for inner in level.inner:
        for at, buffer, moved in _moved(inner, capacity):
            met.add(buffer)
            total = Moved()
            total.add(moved, level.mean)
            yield at, buffer, total
    for buffer in {group.buffer for group in level.groups} - met:
        # Accesses between the loops; a line each, once per iteration.
        once = level.once[buffer]
        yield level, buffer, Moved(fetched(once) * level.mean, once.written_lines * level.mean)


def _once(level: Level) -> Iterator[tuple[Level, Buffer, Moved]]:
    """As what a loop touches stays in the cache, it is moved once."""
    loops: dict[Buffer, list[tuple[Level, float]]] = {}
    for inner, times in _leaves(level, 1):
        for buffer in {group.buffer for group in inner.groups}:
            loops.setdefault(buffer, []).append((inner, times))
    for buffer, touching in loops.items():
        whole = level.whole[buffer]
        for at, nbytes in _shares(touching, fetched(whole), lambda t: fetched(t), buffer):
            yield at, buffer, Moved(fetched=nbytes)
        stores = reversed(touching)
        for at, nbytes in _shares(stores, whole.written_lines, lambda t: t.written_lines, buffer):
            yield at, buffer, Moved(passed=nbytes) if whole.passes else Moved(written=nbytes)


def _leaves(level: Level, times: float) -> Iterator[tuple[Level, float]]:
    """Loops with accesses of their own, and how often each of them is run."""
    if level.groups:
        yield level, times
    for inner in level.inner:
        yield from _leaves(inner, times * level.mean)


def _shares(
    loops: Iterable[tuple[Level, float]],
    nbytes: int,
    size: Callable[[Touched], int],
    buffer: Buffer,
) -> Iterator[tuple[Level, float]]:
    """Each loop's part of what is moved: as much as it touches, as long as there is some."""
    touching = [(at, n) for at, times in loops if (n := size(at.whole[buffer]) * times)]
    left = float(nbytes)
    for position, (at, most) in enumerate(touching):
        part = left if position == len(touching) - 1 else min(left, most)
        left -= part
        if part:
            yield at, part
