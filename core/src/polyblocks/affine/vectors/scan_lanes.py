"""Whether the rows of a scan become lanes of vectors: which scans, how many lanes, and the gain."""

from __future__ import annotations

import math
from dataclasses import dataclass

from polyblocks.affine import operation_cost as cost
from polyblocks.affine.model import Nest
from polyblocks.affine.vectors.lanes import NoLanesError, lanes_of
from polyblocks.affine.vectors.scan_tiles import RowScan
from polyblocks.target import TargetDescription

#: A tile is as long as a register has numbers of this size in bits. Wider ones take several
#: registers, and one is computed while another one waits.
NARROW = 32
#: Cycles until an operation has its result.
LATENCY = 4


@dataclass(frozen=True)
class RowsInLanes:
    """A scan whose rows can be lanes.

    Attributes:
        scan: the nest.
        lanes: rows of a tile.
        before: cycles of the busiest thread for one step of all its rows, one by one.
        after: those in lanes, with the transpositions.
    """

    scan: RowScan
    lanes: int
    before: int
    after: int

    @property
    def pays(self) -> bool:
        """Whether lanes are faster."""
        return self.after < self.before


def rows_in_lanes(nest: Nest, target: TargetDescription) -> RowsInLanes | None:
    """The scan of a nest, if its rows but not its steps can be lanes; None for other nests."""
    lanes = target.vector_bits // NARROW
    if target.launches_nests or lanes < 2:
        return None
    scan = RowScan.of(nest)
    if scan is None or not _is_serial(scan):
        return None
    if not all(bits and target.vector_bits % bits == 0 for bits in scan.bits()):
        return None
    if scan.row.var.extent < 2 * lanes or scan.loop.var.extent < lanes:
        return None
    return RowsInLanes(scan, lanes, *_cycles(scan, lanes, target))


def _is_serial(scan: RowScan) -> bool:
    """Whether the steps of a row cannot be lanes."""
    try:
        lanes_of(scan.loop)
    except NoLanesError:
        return True
    return False


def _cycles(scan: RowScan, lanes: int, target: TargetDescription) -> tuple[int, int]:
    body = scan.loop.body
    waiting = LATENCY * cost.depth(body)
    outer = math.prod(f.var.extent for f in scan.shape.parallel if f is not scan.row)

    def share(count: int) -> int:
        return -(-count * outer // target.shared_level.size)

    one = max(waiting, cost.operations(body))
    registers = max(scan.bits()) * lanes / target.vector_bits
    # A square of n vectors is transposed by n * log2(n) shuffles, loads and stores besides.
    moves = sum(
        (math.log2(lanes) + 2) * 8 * a.buffer.bytes_per_element * lanes / target.vector_bits
        for a in scan.moved
    )
    step = max(waiting, cost.operations(body) * registers) + moves
    rows = scan.row.var.extent
    tiles, left = divmod(rows, lanes)
    return share(rows) * one, math.ceil(share(tiles) * step + share(left) * one)
