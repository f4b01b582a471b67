"""Sorting rows by the digits of an integer key, on buffers.

Radix sort from the least significant digit (Knuth, The Art of Computer Programming, volume 3,
5.2.5): one sweep counts the elements with each digit, and one sweep for each digit puts every
element behind those with smaller digits and the earlier ones with the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

from polyblocks.algorithms.sorting import loops as w
from polyblocks.algorithms.sorting import tensors as t
from polyblocks.algorithms.sorting.merges import CHAINS, Runs, merge_all
from polyblocks.algorithms.sorting.order import Order
from polyblocks.mlir import dialect, ir

#: Bits of a digit, at most: a row's counts of all digits stay in the innermost cache.
DIGIT = 8
#: The same for rows of at least :data:`LONG` elements, whose counts are few beside their data. On
#: one thread of an Emerald Rapids 10^6 floats take 16.3 ms instead of 20.4, 10^7 take 253 instead
#: of 276; 10^5 take 1 ms with either.
LONG_DIGIT, LONG = 11, 1 << 18
#: The most runs that a row is cut into for several threads, and the fewest elements of a run: each
#: doubling of the runs adds a sweep that merges two.
RUNS, RUN = 8, 1 << 15
#: The extent of rows that may be cut is a multiple of this, so that all parts are equally long.
MULTIPLE = RUNS * CHAINS


def padded_extent(extent: int) -> int:
    """Elements that a row should have to be sorted by several threads: at least its own."""
    return extent if extent < 2 * RUN else -(-extent // MULTIPLE) * MULTIPLE


def sort_by_digits(buffers: list[Any], order: Order, threads: int) -> None:
    """Write the loops that sort rows along the last dimension, in place.

    Few long rows are cut into runs, which threads sort each by itself, and merge in pairs.

    Args:
        buffers: of one shape, the keys first; equal keys keep their order.
        order: of the keys, which are signed.
        threads: that share the work.
    """
    *outer, extent = buffers[0].type.shape
    runs = 1
    while (
        runs * prod(outer) < threads
        and runs < RUNS
        and extent >= 2 * runs * RUN
        and extent % (2 * runs * CHAINS) == 0
    ):
        runs *= 2
    length = extent // runs
    digits = _digits(order.shift, order.bits, LONG_DIGIT if length >= LONG else DIGIT)
    if runs == 1:
        _Digits(buffers, order, digits).sort()
        return

    def before(first: list[Any], second: list[Any]) -> Any:
        # Of equal keys in words the positions may be compared too.
        return replace(order, shift=0).before(first[0], second[0])

    sorted_runs = Runs(_Digits(buffers, order, digits).sort_runs(runs), length, nested=True)
    merge_all(sorted_runs, buffers, before, threads)


class _Digits:
    """The loops of one sort, of rows or of runs of these."""

    def __init__(self, buffers: list[Any], order: Order, digits: list[tuple[int, int]]) -> None:
        self.buffers, self.order = buffers, order
        *self.outer, self.extent = buffers[0].type.shape
        self.digits = digits
        self.size = sum(1 << bits for _, bits in digits)

    def sort(self) -> None:
        """Sort whole rows in place."""
        others = self._scratch(self.buffers[0].type.shape)
        self.starts = self._table(self.outer)

        def row(at: list[Any]) -> None:
            source, target = self._row(at, self.extent, self.buffers, others)
            if source is self.buffers:
                return

            def copy(i: list[Any]) -> None:
                for old, new in zip(source, target, strict=True):
                    w.store(w.load(old, [*at, *i]), new, [*at, *i])

            w.loops([self.extent], copy)

        w.loops(self.outer, row)

    def sort_runs(self, runs: int) -> list[Any]:
        """Sort runs of rows: equally many neighbouring elements.

        Returns:
            Buffers [*outer, runs, elements of a run].
        """
        length = self.extent // runs
        one, other = (self._scratch([*self.outer, runs, length]) for _ in range(2))
        self.starts = self._table([*self.outer, runs])
        run = len(self.outer)
        exprs = w.dims(run + 2)
        place = exprs[run] * length + exprs[run + 1]

        def sort_run(at: list[Any]) -> None:
            self._row(at, length, one, other, [*exprs[:run], place])

        w.loops([*self.outer, runs], sort_run)
        return one if len(self.digits) % 2 else other

    def _scratch(self, shape: list[int]) -> list[Any]:
        kinds = [ir.MemRefType.get(list(shape), b.type.element_type) for b in self.buffers]
        return [dialect("memref").AllocOp(kind, [], []).result for kind in kinds]

    def _table(self, outer: list[int]) -> Any:
        kind = ir.MemRefType.get([*outer, self.size], ir.IntegerType.get_signless(32))
        return dialect("memref").AllocOp(kind, [], []).result

    def _row(
        self,
        row: list[Any],
        extent: int,
        one: list[Any],
        other: list[Any],
        exprs: list[Any] | None = None,
    ) -> tuple[list[Any], list[Any]]:
        """Sort one row or run.

        Args:
            row: variables of the loops around.
            extent: its elements.
            one, other: take the elements in turns, beginning with ``other`` if these are in
                ``one``, and with ``one`` if they are in the sort's own buffers.
            exprs: where these are, if not in ``one``.

        Returns:
            The buffers that have the sorted elements, and the other ones.
        """
        i32 = ir.IntegerType.get_signless(32)

        def sweep(body: Callable[[Any], None]) -> None:
            w.loops([extent], lambda at: body(at[0]))

        def own(i: Any) -> list[Any]:
            return [w.load(buffer, [*row, i], exprs) for buffer in self.buffers]

        def count(i: Any) -> None:
            word = w.load(self.buffers[0], [*row, i], exprs)
            for number in range(len(self.digits)):
                self._advance(row, word, number)

        w.loops([self.size], lambda at: w.store(t.constant(i32, 0), self.starts, [*row, *at]))
        sweep(count)
        base = 0
        for _, bits in self.digits:
            self._begin(row, base, 1 << bits)
            base += 1 << bits
        source, target = (one, other) if exprs is None else (other, one)
        elements = own
        for number in range(len(self.digits)):
            sweep(partial(self._move, row, number, elements, target))
            source, target = target, source

            def elements(i: Any, source: list[Any] = source) -> list[Any]:
                return [w.load(buffer, [*row, i]) for buffer in source]

        return source, target

    def _advance(self, row: list[Any], word: Any, number: int) -> Any:
        """Add 1 to what is kept for the digit of a word; returns what it was."""
        memref = dialect("memref")
        where = [*row, self._digit(word, number)]
        old = memref.LoadOp(self.starts, where).result
        memref.StoreOp(w.operation("AddIOp", old, t.constant(old.type, 1)), self.starts, where)
        return old

    def _digit(self, word: Any, number: int) -> Any:
        """The index of a word's digit in the table."""
        kind = word.type
        low, bits = self.digits[number]
        # The bits below are of the position.
        digit = replace(self.order, shift=0).compared(word)
        if low:
            digit = w.operation("ShRUIOp", digit, t.constant(kind, low))
        digit = w.operation("AndIOp", digit, t.constant(kind, (1 << bits) - 1))
        turned = (1 << bits) - 1 if self.order.descending else 0
        if low + bits == kind.width:
            # Negative numbers come first.
            turned ^= 1 << (bits - 1)
        if turned:
            digit = w.operation("XOrIOp", digit, t.constant(kind, turned))
        base = sum(1 << b for _, b in self.digits[:number])
        if base:
            digit = w.operation(
                "OrIOp" if _aligned(base, bits) else "AddIOp", digit, t.constant(kind, base)
            )
        return w.as_index(digit)

    def _begin(self, row: list[Any], base: int, size: int) -> None:
        """Counts become the numbers of elements with smaller digits."""
        exprs = w.dims(len(row) + 1)
        exprs[-1] = exprs[-1] + base

        def step(i: Any, running: list[Any]) -> list[Any]:
            count = w.load(self.starts, [*row, i], exprs)
            w.store(running[0], self.starts, [*row, i], exprs)
            return [w.operation("AddIOp", running[0], count)]

        w.steps(size, [], [t.constant(ir.IntegerType.get_signless(32), 0)], step)

    def _move(
        self,
        row: list[Any],
        number: int,
        elements: Callable[[Any], list[Any]],
        target: list[Any],
        i: Any,
    ) -> None:
        loaded = elements(i)
        place = self._advance(row, loaded[0], number)
        index = t.as_index(place, int(target[0].type.shape[-1]))
        for element, buffer in zip(loaded, target, strict=True):
            dialect("memref").StoreOp(element, buffer, [*row, index])


def _aligned(base: int, bits: int) -> bool:
    """Whether a number below ``2**bits`` may be joined to the base instead of being added."""
    return base % (1 << bits) == 0


def _digits(low: int, high: int, most: int) -> list[tuple[int, int]]:
    """The first bit and the number of bits of each digit of a key, about equally wide."""
    count = -(-(high - low) // most)
    width = -(-(high - low) // count)
    return [(first, min(width, high - first)) for first in range(low, high, width)]
