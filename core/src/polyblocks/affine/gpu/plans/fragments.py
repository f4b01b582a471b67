"""Consequences of a unit's fragments: each lane's steps, and which of them are contiguous.

The order of the steps inside of a unit is free as long as both operands agree. Where lanes read for
themselves, the steps are given out such that those of a lane follow each other in memory, as many
as one access takes, or all of them: a *chunk*. A chip's loads of whole tiles bring each step to
where the unit has it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from polyblocks.target import Fragment, GroupUnit, MatrixUnit, TileLoads

#: Bytes of the widest access.
ACCESS_BYTES = 16
#: Bytes that the shared memory serves at once.
PHASE_BYTES = 128
#: Rows, and elements of a row, of the tiles that are read by columns.
TILE = 8


@dataclass(frozen=True)
class Steps:
    """How the steps of a unit are given out.

    The ``j``-th step of a lane is ``chunk * (lane + lanes * (j // chunk)) + j % chunk``.

    Attributes:
        of_lane: steps of a lane.
        lanes: lanes that have different steps.
        bits: the bits of the lane's number that count these, lowest first.
        chunk: steps that one access takes.
    """

    of_lane: int
    lanes: int
    bits: tuple[int, ...]
    chunk: int

    @property
    def chunks(self) -> int:
        """Chunks of a lane."""
        return self.of_lane // self.chunk


@cache
def outers_of(fragment: Fragment) -> tuple[int, ...]:
    """The rows (or columns) that a lane has, beside its first one; in order."""
    return tuple(sorted({fragment.at(p)[0] for p in range(fragment.elements)}))


@cache
def steps_of(fragment: Fragment) -> tuple[int, ...]:
    """The steps (of accumulators: columns) that a lane has, beside its first one; in order."""
    return tuple(sorted({fragment.at(p)[1] for p in range(fragment.elements)}))


@cache
def turned(unit: MatrixUnit) -> MatrixUnit:
    """The unit of the transposed sums: what it calls rows are its second operand's columns.

    The order of columns is free as well. Those of a tile's eight, which a warp reads together,
    change places such that neighbours are in one lane as far as possible.
    """
    assert unit.fragments is not None
    first, second, sums = unit.fragments
    low = [1 << bit for bit in range(3)]
    of_lane = [row for row, _ in sums.places if row in low]
    order = dict(zip([*of_lane, *(row for row in low if row not in of_lane)], low, strict=True))

    def columns(adds: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
        return tuple((order.get(row, row), other) for row, other in adds)

    def swapped(adds: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
        return tuple((other, row) for row, other in columns(adds))

    m, n, k = unit.shape
    one, other = unit.both
    return replace(
        unit,
        shape=(n, m, k),
        operands=other,
        second=one if one != other else "",
        fragments=(
            second,
            replace(first, lanes=columns(first.lanes), places=columns(first.places)),
            replace(sums, lanes=swapped(sums.lanes), places=swapped(sums.places)),
        ),
        second_first=not unit.second_first,
    )


@cache
def exchanges_of(unit: MatrixUnit, adds: MatrixUnit) -> tuple[int, ...] | None:
    """Bits of a lane's number across which sums are exchanged to become a first operand.

    A lane then has the elements of its rows that it needs of the operand: its own sums, and those
    of lanes whose numbers differ in these bits. None: it would need those of other lanes. Sums are
    columns, or steps of the operand, of several calls of a unit side by side.

    Args:
        unit: whose operand it is.
        adds: the unit of the sums, the same one or one with other columns.
    """
    operand, sums = unit.first, adds.sums
    n, k = adds.shape[1], unit.shape[2]
    if operand is None or sums is None or (k % n and n % k):
        return None
    bits = []
    for bit, (own, wanted) in enumerate(zip(sums.lanes, operand.lanes, strict=True)):
        if own != wanted:
            if wanted != (0, 0) or own[0]:
                return None
            bits.append(bit)
    rows, columns = outers_of(sums), steps_with(sums, tuple(bits))
    places = [operand.at(p) for p in range(operand.elements)]
    begins = range(0, max(n, k), k)
    has_all = all(r in rows and (b + s) % n in columns for b in begins for r, s in places)
    return tuple(bits) if has_all else None


@cache
def steps_with(fragment: Fragment, bits: tuple[int, ...]) -> tuple[int, ...]:
    """The steps that a lane has with those of the lanes that differ in some bits, in order."""
    lanes = [0]
    for bit in bits:
        lanes += [lane | 1 << bit for lane in lanes]
    places = range(fragment.elements)
    return tuple(sorted({fragment.at(p, lane)[1] for p in places for lane in lanes}))


@cache
def steps_given(unit: MatrixUnit, element_bytes: int) -> Steps | None:
    """How the steps of both operands are given out; None if they have them in different ways.

    Of a unit that reads shared memory no lane has any.
    """
    if isinstance(unit, GroupUnit):
        return Steps(unit.shape[2], 1, (), ACCESS_BYTES // element_bytes)
    assert unit.fragments is not None
    sides = []
    for fragment in unit.fragments[:2]:
        adds = sorted((step, bit) for bit, (_, step) in enumerate(fragment.lanes) if step)
        sides.append((tuple(bit for _, bit in adds), steps_of(fragment)))
    if sides[0] != sides[1]:
        return None
    bits, steps = sides[0]
    lanes, of_lane = 1 << len(bits), len(steps)
    if lanes * of_lane != unit.shape[2]:
        return None
    return Steps(of_lane, lanes, bits, min(of_lane, ACCESS_BYTES // element_bytes))


@cache
def has_whole_tiles(
    unit: MatrixUnit, loads: TileLoads, of_warp: tuple[int, int], element_bytes: int
) -> bool:
    """Whether the registers of both operands are those of tiles, four at a time.

    Args:
        unit: with fragments.
        loads: the chip's.
        of_warp: units along rows and along columns.
        element_bytes: of an operand.
    """
    assert unit.fragments is not None
    return all(
        _is_tiles(fragment, loads, element_bytes)
        and len(tiles_of(fragment, element_bytes)) * count % 4 == 0
        for fragment, count in zip(unit.fragments[:2], of_warp, strict=True)
    )


def tiles_of(fragment: Fragment, element_bytes: int) -> list[tuple[int, int]]:
    """The row (or column) and the step at which the tile of each register begins."""
    return [fragment.at(first) for first in range(0, fragment.elements, 4 // element_bytes)]


def _is_tiles(fragment: Fragment, loads: TileLoads, element_bytes: int) -> bool:
    if fragment.register_bits != 32 or element_bytes > 2:
        return False
    width = 4 // element_bytes
    lanes = tuple((outer, step * 2 // width) for outer, step in fragment.lanes)
    begins = tiles_of(fragment, element_bytes)
    runs = all(
        fragment.at(width * k + j) == (outer, step + j)
        for k, (outer, step) in enumerate(begins)
        for j in range(width)
    )
    aligned = all(outer % TILE == 0 and step % (4 * width) == 0 for outer, step in begins)
    return lanes == tuple(loads.lanes) and runs and aligned
