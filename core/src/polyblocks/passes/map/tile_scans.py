"""tile-scans: scans along rows that cannot be split go along many rows at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.model import Nest, Sequence
from polyblocks.affine.vectors.scan_lanes import RowsInLanes, rows_in_lanes
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

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Tile where threads have less to do then."""
        target = context.target
        for nest in sequence.nests():
            found = rows_in_lanes(nest, target)
            if found is None:
                continue
            context.decide(
                self.name,
                nest.name,
                "rows in lanes" if found.pays else "row by row",
                lanes=found.lanes,
                cycles_of_rows=found.before,
                cycles_of_lanes=found.after,
            )
            if found.pays:
                self._tile(sequence, nest, found, target.vector_bits)

    def _tile(self, sequence: Sequence, nest: Nest, found: RowsInLanes, vector_bits: int) -> None:
        tiles, others = found.scan.tiled(found.lanes, vector_bits)
        nest.replace(tiles)
        if others:
            sequence.items.insert(sequence.items.index(nest) + 1, nest.edge(others))
