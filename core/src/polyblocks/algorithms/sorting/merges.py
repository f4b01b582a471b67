"""Merging sorted runs of rows, on buffers, in the order of any comparator.

Each sweep merges neighbouring runs in pairs. Where pairs are fewer than threads, parts of one pair
are merged by several: a bisection finds how many elements of each run come before a part (Odeh,
Green, Mwassi, Shmueli, Birk: Merge Path, IPDPSW 2012). There is no branch on data, and each thread
merges several parts at once: what a step takes of one part depends on the step before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

from polyblocks.algorithms.sorting import loops as w
from polyblocks.algorithms.sorting import tensors as t
from polyblocks.mlir import dialect, ir

#: Parts that a thread merges at once. Their counters have different types: LLVM would keep equal
#: ones in a vector and gather what they point to, which takes twice the time.
CHAINS = 2

#: Whether the first of two elements, of several arrays each, comes before the second one.
Before = Callable[[list[Any], list[Any]], Any]


@dataclass(frozen=True)
class Runs:
    """Sorted neighbouring elements of rows.

    Attributes:
        buffers: of elements, of one shape.
        length: elements of a run, but for the last one of a row, which may have fewer.
        nested: whether runs have a dimension of their own.
    """

    buffers: list[Any]
    length: int
    nested: bool = False


def merge_all(runs: Runs, targets: list[Any], before: Before, threads: int) -> None:
    """Write the loops that merge all runs of each row.

    Args:
        runs: sorted; at least two for each row.
        targets: take the sorted rows; they are not the buffers of the runs.
        before: a strict order; elements that it leaves equal keep theirs.
        threads: that share the work.
    """
    extent = int(targets[0].type.shape[-1])
    levels = 0
    while runs.length << levels < extent:
        levels += 1
    other = targets
    if levels > 1:
        other = [dialect("memref").AllocOp(b.type, [], []).result for b in targets]
    for level in range(levels):
        into = targets if (levels - level) % 2 else other
        _merge_pairs(runs, into, before, threads)
        runs = Runs(into, 2 * runs.length)


def _merge_pairs(runs: Runs, targets: list[Any], before: Before, threads: int) -> None:
    *outer, extent = targets[0].type.shape
    size = 2 * runs.length
    pairs = -(-extent // size)
    parts = 1
    while parts * pairs * prod(outer) < threads and parts < size:
        parts *= 2
    exact = extent % size == 0 and size % (parts * CHAINS) == 0 and size >= 64 * parts * CHAINS
    merge = _Merge(runs, targets, before, parts, CHAINS if exact else 1)
    w.loops([*outer, pairs, parts] if parts > 1 else [*outer, pairs], merge.write)


class _Merge:
    """The loops that merge a part of a pair of runs."""

    def __init__(
        self, runs: Runs, targets: list[Any], before: Before, parts: int, chains: int
    ) -> None:
        self.runs = runs
        self.targets = targets
        self.before = before
        self.parts, self.chains = parts, chains
        self.size = -(-2 * runs.length // (parts * chains))
        *outer, self.extent = targets[0].type.shape
        self.rank = len(outer)
        self.kinds = [ir.IntegerType.get_signless(bits) for bits in (32, 64)[:chains]]

    def write(self, at: list[Any]) -> None:
        """Write them for variables: of a row, of a pair, and of a part if there are several."""
        length, extent = self.runs.length, self.extent
        self.at = at
        exprs = w.dims(len(at))
        pair = exprs[self.rank] * (2 * length)
        part = exprs[-1] * (self.chains * self.size) if self.parts > 1 else 0 * pair
        begins = [part + chain * self.size for chain in range(self.chains)]
        self.begin = w.value_of(at, pair)
        ahead = [
            t.as_integer(w.value_of(at, expr), kind)
            for expr, kind in zip(begins, self.kinds, strict=True)
        ]
        first = [self._bisect(number) for number in ahead]
        if self.parts == 1:
            first[0] = t.constant(self.kinds[0], 0)
        bound: Any = self.size
        if extent % (self.size * self.chains * self.parts):
            bound = [ir.AffineConstantExpr.get(self.size), extent - pair - part]
        k_dim = ir.AffineDimExpr.get(len(at))

        def step(k: Any, carried: list[Any]) -> list[Any]:
            merged = [self._step(*each, k) for each in zip(ahead, carried, strict=True)]
            for begin, (elements, _) in zip(begins, merged, strict=True):
                out = [*exprs[: self.rank], pair + begin + k_dim]
                for element, target in zip(elements, self.targets, strict=True):
                    w.store(element, target, [*at, k], out)
            return [i for _, i in merged]

        w.steps(bound, [] if isinstance(bound, int) else at, first, step)

    def _counts(self, kind: Any) -> list[Any]:
        """How many elements the two runs have."""
        length, extent = t.constant(kind, self.runs.length), self.extent
        if extent % (2 * self.runs.length) == 0:
            return [length, length]
        begin = t.as_integer(self.begin, kind)
        rest = w.operation("SubIOp", t.constant(kind, extent), begin)
        ours = w.operation("MinSIOp", rest, length)
        theirs = w.operation("SubIOp", rest, ours)
        return [ours, w.operation("MinSIOp", theirs, length)]

    def _step(self, ahead: Any, i: Any, done: Any) -> tuple[list[Any], Any]:
        """The next element of a part, and how many of the first run are then before the next one.

        Args:
            ahead: elements of the pair before the part.
            i: elements of the first run that are taken.
            done: elements of the part that are taken.
        """
        counts, done = self._counts(i.type), t.as_integer(done, i.type)
        j = w.operation("SubIOp", w.operation("AddIOp", ahead, done), i)
        ours, theirs = self._load(0, i), self._load(1, j)
        ended = t.compare("sge", i, counts[0])
        earlier = w.operation("OrIOp", ended, self.before(theirs, ours))
        takes = w.operation("AndIOp", earlier, t.compare("slt", j, counts[1]))
        elements = [t.select(takes, b, a) for a, b in zip(ours, theirs, strict=True)]
        following = w.operation("AddIOp", i, t.constant(i.type, 1))
        return elements, t.select(takes, i, following)

    def _bisect(self, ahead: Any) -> Any:
        """How many of the first ``ahead`` elements of both runs are of the first one."""
        zero, one = t.constant(ahead.type, 0), t.constant(ahead.type, 1)
        ours, theirs = self._counts(ahead.type)
        low = w.operation("MaxSIOp", w.operation("SubIOp", ahead, theirs), zero)
        high = w.operation("MinSIOp", ahead, ours)

        def step(_: Any, bounds: list[Any]) -> list[Any]:
            low, high = bounds
            middle = w.operation("ShRSIOp", w.operation("AddIOp", low, high), one)
            other = w.operation("SubIOp", w.operation("SubIOp", ahead, middle), one)
            open_ = t.compare("slt", low, high)
            later = self.before(self._load(1, other), self._load(0, middle))
            down = w.operation("AndIOp", open_, later)
            earlier = w.operation("XOrIOp", later, t.constant(later.type, 1))
            up = w.operation("AndIOp", open_, earlier)
            above = w.operation("AddIOp", middle, one)
            return [t.select(up, above, low), t.select(down, middle, high)]

        return w.steps(self.runs.length.bit_length(), [], [low, high], step)[0]

    def _load(self, which: int, i: Any) -> list[Any]:
        """An element of a run; any one where the run has ended, or before it begins."""
        memref, length = dialect("memref"), self.runs.length
        row = self.at[: self.rank]
        if self.runs.nested:
            run = w.value_of(self.at, w.dims(len(self.at))[self.rank] * 2 + which)
            where = [*row, run, t.as_index(i, length)]
        else:
            place = w.operation("AddIOp", t.as_integer(self.begin, i.type), i)
            if which:
                place = w.operation("AddIOp", place, t.constant(i.type, length))
            where = [*row, t.as_index(place, self.extent)]
        return [memref.LoadOp(buffer, where).result for buffer in self.runs.buffers]
