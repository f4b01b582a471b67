"""Elements at single places of sorted rows, without sorting: a bisection of their keys.

Each step settles one bit of a key, from the highest one on: the key is the greatest number that no
more keys are less than there are places before its own. The same steps then find the position,
among those of equal keys. A step is a sweep that counts: it is vectorized, branches on no data, and
reads a row that stays in a cache.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from polyblocks.algorithms.sorting import loops as w
from polyblocks.algorithms.sorting import tensors as t
from polyblocks.algorithms.sorting.digits import RUN
from polyblocks.algorithms.sorting.network import partner_masks
from polyblocks.algorithms.sorting.rows import Rows
from polyblocks.mlir import dialect, ir

#: Cycles of a step, on a thread with vectors of 16 elements: of a key, and of the step.
COUNT, STEP = 0.1, 30.0
#: Cycles of a key that is put behind others, or left out.
KEEP = 3.0

#: Whether the element at a position, with a key, is among those that are counted for a number.
_Counted = Callable[[Any, Any, Any], Any]


def cycles(extent: int, bits: int) -> float:
    """Predicted cycles of finding one place of a row on a thread with vectors of 16 elements.

    Args:
        extent: elements of the row.
        bits: of a key.
    """
    wide = max(1, bits // 32)
    return _steps(extent, bits) * (STEP + COUNT * wide * extent)


def cut_cycles(extent: int, bits: int) -> float:
    """Predicted cycles of :func:`first_unordered`, for a row."""
    return cycles(extent, bits) + KEEP * extent


def saves_launches(extent: int, bits: int, places: int) -> bool:
    """Whether a grid of threads is launched less often than for sorting rows by a network."""
    return places * _steps(extent, bits) < len(partner_masks(extent))


def _steps(extent: int, bits: int) -> int:
    return bits + extent.bit_length() + 1


def sweeps_alone(rows: Rows, threads: int, launches: bool) -> bool:
    """Whether every sweep of all rows is a nest of its own, which threads share, not every row."""
    return launches or (prod(rows.outer) < threads and rows.extent >= 2 * RUN)


def place_at(rows: Rows, number: Any, alone: bool) -> Any:
    """Where the element lies that comes to one place when rows are sorted.

    Args:
        rows: the keys.
        number: the place in the sorted rows, from 0 on: an int, or an operand of integers
            whose loops are those over rows.
        alone: see :func:`sweeps_alone`.

    Returns:
        int32 of the outer dimensions and 1.
    """
    i32 = t.integer(32)
    keys = rows.ordered()
    if isinstance(number, int):
        numbers = t.filled(rows.outer, i32, number)
    else:
        (numbers,) = t.computed(rows.outer, [i32], [number], _narrowed)
    return _by_sweeps(keys, numbers) if alone else _by_rows(keys, numbers)


def _narrowed(loaded: list[Any]) -> list[Any]:
    (number,), i32 = loaded, t.integer(32)
    wide = int(number.type.width) > 32
    return [dialect("arith").TruncIOp(i32, number).result if wide else number]


def _less(number: Any, key: Any, _: Any) -> Any:
    """Whether a key is less than a number."""
    return t.compare("slt", key, number)


def _equal_before(key: Any) -> _Counted:
    """Whether a key is equal to another one, and before a position."""

    def counted(number: Any, other: Any, position: Any) -> Any:
        before = t.compare("slt", position(), number)
        return w.operation("AndIOp", t.compare("eq", other, key), before)

    return counted


def _counted_too(sum_: Any, counts: Any) -> Any:
    return w.operation("AddIOp", sum_, dialect("arith").ExtUIOp(sum_.type, counts).result)


def _bit(bits: int, i: Any, kind: Any) -> Any:
    """The bit that a step settles, as a number."""
    distance = w.operation("SubIOp", t.constant(kind, bits - 1), t.as_integer(i, kind))
    return w.operation("ShLIOp", t.constant(kind, 1), distance)


def _by_rows(keys: Any, numbers: Any) -> Any:
    """The places, by one nest over rows."""
    *outer, extent = keys.type.shape
    i32 = t.integer(32)
    number_buffer, search = _buffer(numbers), _RowSearch(_buffer(keys))
    found = dialect("memref").AllocOp(ir.MemRefType.get([*outer, 1], i32), [], []).result

    def row(at: list[Any]) -> None:
        number = w.load(number_buffer, at)
        key = search.key(at, number)
        ahead = w.operation("SubIOp", number, search.count(at, key, _less))
        place = search.find(at, i32, extent.bit_length(), 0, ahead, _equal_before(key))
        w.store(place, found, at, [*w.dims(len(at)), ir.AffineConstantExpr.get(0)])

    w.loops(outer, row)
    return _tensor(found)


def first_unordered(keys: Any, count: int) -> Any:
    """Places of the first elements of sorted rows, in the order in which they lie.

    Args:
        keys: signed, ascending, [..., n].
        count: less than n.

    Returns:
        int32 [..., count].
    """
    *outer, extent = keys.type.shape
    i32, memref = t.integer(32), dialect("memref")
    key_buffer = _buffer(keys)
    search = _RowSearch(key_buffer)
    # The last place takes what is left out.
    found = memref.AllocOp(ir.MemRefType.get([*outer, count + 1], i32), [], []).result

    def row(at: list[Any]) -> None:
        wanted, one = t.constant(i32, count), t.constant(i32, 1)
        key = search.key(at, w.operation("SubIOp", wanted, one))
        equal = w.operation("SubIOp", wanted, search.count(at, key, _less))

        def keep(i: Any, carried: list[Any]) -> list[Any]:
            kept, left = carried
            other = w.load(key_buffer, [*at, i])
            tie = w.operation(
                "AndIOp", t.compare("eq", other, key), t.compare("sgt", left, t.constant(i32, 0))
            )
            takes = w.operation("OrIOp", tie, t.compare("slt", other, key))
            memref.StoreOp(t.as_integer(i, i32), found, [*at, t.as_index(kept, count + 1)])
            ties = dialect("arith").ExtUIOp(i32, tie).result
            return [_counted_too(kept, takes), w.operation("SubIOp", left, ties)]

        w.steps(extent, [], [t.constant(i32, 0), equal], keep)

    w.loops(outer, row)
    return _tensor(found)


class _RowSearch:
    """Searches in one row after the other.

    Args:
        keys: a buffer, along whose last dimension rows lie.
    """

    def __init__(self, keys: Any) -> None:
        self._keys = keys
        self._extent = int(keys.type.shape[-1])

    def key(self, at: list[Any], number: Any) -> Any:
        """The key at a place of the sorted row that variables say."""
        kind = self._keys.type.element_type
        return self.find(at, kind, int(kind.width), -t.greatest(kind) - 1, number, _less)

    def count(self, at: list[Any], number: Any, counted: _Counted) -> Any:
        """How many elements of the row are counted for a number."""
        i32 = t.integer(32)

        def step(i: Any, sums: list[Any]) -> list[Any]:
            key = w.load(self._keys, [*at, i])
            return [_counted_too(sums[0], counted(number, key, lambda: t.as_integer(i, i32)))]

        return w.steps(self._extent, [], [t.constant(i32, 0)], step)[0]

    def find(
        self, at: list[Any], kind: Any, bits: int, least: int, before: Any, counted: _Counted
    ) -> Any:
        """The greatest number of a type that at most ``before`` elements are counted for."""

        def step(i: Any, carried: list[Any]) -> list[Any]:
            trial = w.operation("AddIOp", carried[0], _bit(bits, i, kind))
            fits = t.compare("sle", self.count(at, trial, counted), before)
            return [t.select(fits, trial, carried[0])]

        return w.steps(bits, [], [t.constant(kind, least)], step)[0]


def _tensor(buffer: Any) -> Any:
    kind = ir.RankedTensorType.get(list(buffer.type.shape), buffer.type.element_type)
    return ir.Operation.create(
        "bufferization.to_tensor",
        results=[kind],
        operands=[buffer],
        attributes={"restrict": ir.UnitAttr.get(), "writable": ir.UnitAttr.get()},
    ).result


def _buffer(tensor: Any) -> Any:
    kind = ir.MemRefType.get(list(tensor.type.shape), tensor.type.element_type)
    return ir.Operation.create(
        "bufferization.to_buffer",
        results=[kind],
        operands=[tensor],
        attributes={"read_only": ir.UnitAttr.get()},
    ).result


def _by_sweeps(keys: Any, numbers: Any) -> Any:
    """The places, by nests over all rows, each of which settles two bits."""
    kind, i32 = keys.type.element_type, t.integer(32)
    search = _Sweeps(keys)

    def less() -> _Counted:
        return _less

    bits = int(kind.width)
    key = search.find(kind, bits, -t.greatest(kind) - 1, numbers, [], less)
    (counts,) = search.count([key], [], less)
    (ahead,) = search.each([i32], [numbers, counts], lambda x: [w.operation("SubIOp", *x)])
    bits = search.extent.bit_length()
    place = search.find(i32, bits + bits % 2, 0, ahead, [key], _equal_before)
    operands = [(place, list(range(len(search.outer))))]
    return t.computed([*search.outer, 1], [i32], operands, lambda x: x)[0]


class _Sweeps:
    """Searches in all rows at the same time.

    Attributes:
        outer: extents of all dimensions but the last one, along which rows lie.
        extent: of a row.
    """

    def __init__(self, keys: Any) -> None:
        *self.outer, self.extent = keys.type.shape
        self._keys = keys
        self._rows = list(range(len(self.outer)))

    def each(self, kinds: list[Any], operands: list[Any], body: Callable[..., Any]) -> list[Any]:
        """Numbers of rows that are computed of others; operands of rank 0 are for all rows."""
        known = [(each, self._rows if each.type.shape else ()) for each in operands]
        return t.computed(self.outer, kinds, known, body)

    def count(
        self, numbers: list[Any], of: list[Any], counted: Callable[..., _Counted]
    ) -> list[Any]:
        """How many elements of each row are counted, for each of some numbers.

        Args:
            numbers: tensors of the rows' numbers.
            of: tensors of what is known of rows.
            counted: from the elements of these to what is counted.
        """
        last, i32 = len(self.outer), t.integer(32)

        def body(loaded: list[Any], sums: list[Any]) -> list[Any]:
            key, tried, known = loaded[0], loaded[1 : 1 + len(numbers)], loaded[1 + len(numbers) :]
            holds = counted(*known)
            return [
                _counted_too(sum_, holds(number, key, lambda: t.loop_index(last, i32)))
                for number, sum_ in zip(tried, sums, strict=True)
            ]

        operands: list[t.Operand] = [(self._keys, [*self._rows, last])]
        operands += [(each, self._rows) for each in (*numbers, *of)]
        outs = [(t.filled(self.outer, i32, 0), self._rows) for _ in numbers]
        return t.generic([*self.outer, self.extent], 1, operands, outs, body)

    def find(
        self,
        kind: Any,
        bits: int,
        least: int,
        before: Any,
        of: list[Any],
        counted: Callable[..., _Counted],
    ) -> Any:
        """The greatest numbers that at most as many elements are counted for as a tensor says.

        Args:
            kind: the type of the numbers.
            bits: of the numbers; even.
            least: the least number.
            before: the bound, for each row.
            of, counted: see :meth:`count`.
        """
        scf, tensor, index = dialect("scf"), dialect("tensor"), ir.IndexType.get()
        bounds = (t.constant(index, number) for number in (1, bits, 2))
        loop = scf.ForOp(*bounds, [t.filled(self.outer, kind, least)])
        with ir.InsertionPoint(loop.body):
            (low,) = loop.inner_iter_args
            bit = _bit(bits, loop.induction_variable, kind)
            bit = tensor.FromElementsOp(ir.RankedTensorType.get([], kind), [bit]).result

            def further(loaded: list[Any]) -> list[Any]:
                number, step = loaded
                numbers = [number]
                for _ in range(3):
                    numbers.append(w.operation("AddIOp", numbers[-1], step))
                return numbers[1:]

            def greatest(loaded: list[Any]) -> list[Any]:
                bound, best, *others = loaded
                for number, count in zip(others[:3], others[3:], strict=True):
                    best = t.select(t.compare("sle", count, bound), number, best)
                return [best]

            tried = self.each([kind] * 3, [low, bit], further)
            counts = self.count(tried, of, counted)
            scf.YieldOp(self.each([kind], [before, low, *tried, *counts], greatest))
        return loop.results[0]
