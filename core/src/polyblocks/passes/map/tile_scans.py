"""tile-scans: scans along rows that cannot be split go along many rows at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine import operation_cost as cost
from polyblocks.affine.model import Nest, Sequence
from polyblocks.affine.vectors.lanes import NoLanesError, lanes_of
from polyblocks.affine.vectors.scan_tiles import RowScan
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class TileScansPass(NestPass):
    """Make the rows of a scan the lanes of vectors, where its steps cannot be lanes.

    A block of steps of as many rows as a vector has lanes is transposed, scanned in a tile, and
    its results are transposed back. The last rows stay as they are.

    Before (``f`` is not associative, or not known to be)::

        affine.for %i = 0 to 128 {
          affine.for %k = 0 to 1024 iter_args(%s = %z) -> f32 {
            %x = affine.load %a[%i, %k] ... %t = f(%s, %x) ... affine.store %t, %b[%i, %k] } }

    After::

        affine.for %ti = 0 to 8 {
          affine.for %i = 0 to 16 { affine.store %z, %state[%i] }
          affine.for %tk = 0 to 64 {
            ... affine.load %a[%ti * 16 + %i, %tk * 16 + %k] ... affine.store %x, %in[%k, %i]
            affine.for %i = 0 to 16 {
              affine.for %k = 0 to 16 iter_args(%s = %state[%i]) -> f32 {
                %x = affine.load %in[%k, %i] ... affine.store %t, %out[%k, %i] } }
            ... affine.load %out[%k, %i] ... affine.store %t, %b[%ti * 16 + %i, %tk * 16 + %k] } }
    """

    name: ClassVar[str] = "tile-scans"
    needs: ClassVar[frozenset[str]] = frozenset({facts.NESTS})
    breaks: ClassVar[frozenset[str]] = frozenset(
        {facts.REDUCTIONS, facts.UNTILED, facts.WHOLE_LOOPS}
    )
    #: A tile is as long as a register has numbers of this size in bits. Wider ones take several
    #: registers, and one is computed while another one waits.
    narrow: int = 32
    #: Cycles until an operation has its result.
    latency: int = 4

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Tile where threads have less to do then."""
        target = context.target
        lanes = target.vector_bits // self.narrow
        for nest in sequence.nests():
            scan = RowScan.of(nest)
            if scan is None or lanes < 2 or not self._is_serial(scan):
                continue
            rows, steps = scan.row.var.extent, scan.loop.var.extent
            if not all(bits and target.vector_bits % bits == 0 for bits in scan.bits()):
                continue
            if rows < 2 * lanes or steps < lanes:
                continue
            before, after = self._cycles(scan, lanes, target)
            context.decide(
                self.name,
                nest.name,
                "rows in lanes" if after < before else "row by row",
                lanes=lanes,
                cycles_of_rows=before,
                cycles_of_lanes=after,
            )
            if after < before:
                self._tile(sequence, nest, scan, lanes, target.vector_bits)

    def _is_serial(self, scan: RowScan) -> bool:
        """Whether the steps of a row cannot be lanes."""
        try:
            lanes_of(scan.loop)
        except NoLanesError:
            return True
        return False

    def _cycles(self, scan: RowScan, lanes: int, target: Any) -> tuple[int, int]:
        """Cycles of the busiest thread for one step of all its rows: one by one, and in lanes."""
        body = scan.loop.body
        waiting = self.latency * cost.depth(body)
        outer = math.prod(f.var.extent for f in scan.shape.parallel if f is not scan.row)
        threads = target.shared_level.size

        def share(count: int) -> int:
            return -(-count * outer // threads)

        one = max(waiting, cost.operations(body))
        registers = max(scan.bits()) * lanes / target.vector_bits
        # A square of n vectors is transposed by n * log2(n) shuffles, loads and stores besides.
        moves = sum(
            (math.log2(lanes) + 2) * 8 * a.buffer.bytes_per_element * lanes / target.vector_bits
            for a in scan.moved
        )
        step = max(waiting, cost.operations(body) * registers) + moves
        rows = scan.row.var.extent
        left = rows % lanes
        return share(rows) * one, math.ceil(share(rows // lanes) * step + share(left) * one)

    def _tile(
        self, sequence: Sequence, nest: Nest, scan: RowScan, lanes: int, vector_bits: int
    ) -> None:
        tiles, others = scan.tiled(lanes, vector_bits)
        nest.replace(tiles)
        if others:
            edge = Nest(others, [], changed=True)
            edge.name, edge.kind, edge.sources = f"{nest.name}_edge", nest.kind, nest.sources
            sequence.items.insert(sequence.items.index(nest) + 1, edge)
