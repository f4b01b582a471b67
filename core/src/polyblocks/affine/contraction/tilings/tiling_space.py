"""The tilings of a product among which the fastest is looked for."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, gcd, lcm

from polyblocks.affine.analysis.reductions import ROUNDING
from polyblocks.affine.contraction.copies import along_rows
from polyblocks.affine.contraction.tiling import Tiling
from polyblocks.affine.contraction.tilings.tiling_cost import TilingCost
from polyblocks.target import TileUnit

#: Vectors of a register tile's row: they are written as one, which code generation halves.
VECTORS = (1, 2, 4)
#: K block, at most: the panels of a register tile stay in the private cache.
MAX_DEPTH = 1024
#: K iterations summed before they are added to the total.
SUM_CHUNK = 128
#: The same of a matrix unit's steps, which are several each. Its operands have so few bits that
#: results are rounded to as few, or that longer sums would do no harm.
UNIT_SUM_CHUNK = 512
#: K block, at least, where all results wait: each pass loads and stores them again.
MIN_PASS = 64
#: Part of the private cache for results that wait for the next pass.
WAITING = 3
#: K block over columns that are used once: rows of memory that are read side by side.
STREAMS = 32
#: Part of the private cache for results over columns that are used once: the longer a block, the
#: longer the runs that hardware reads ahead. 8 x 4096 x 4096 on one core of a Zen 4: 4.0 ms with
#: results of half the first cache, 3.3 with these, 6.5 if what is fetched ahead is for the first.
STREAMED = 16
#: Part of the private cache for columns that are used by one block of rows only.
RESIDENT = 2
#: Bytes of panels of a contraction that is a part of a tile.
TILE_BYTES = 768 * 1024
#: Register tiles one above the other from which on columns are copied.
MIN_REUSE = 4


class TilingSpace:
    """The tilings of one product that fit its target.

    Args:
        cost: of the product's tilings.
    """

    def __init__(self, cost: TilingCost) -> None:
        self._cost = cost
        product = self._product = cost.product
        self._rows, self._columns, self._steps = cost.rows, cost.columns, cost.steps
        self._unit = cost.unit
        self._size = cost.size
        self._l2 = cost.core.l2_bytes
        to_load = cost.columns_to_load
        self._prepacked = not to_load and any(o.kept for o in product.operands)
        # Columns that come from far away.
        large = cost.columns * cost.steps * cost.size > self._l2
        self._streams = bool(to_load) and cost.in_place and large
        # Rows that are copied along their loops.
        along = product.windows is None and cost.unit is None
        along &= any(along_rows(product, o, cost.width) for o in product.operands if not o.kept)
        self._row_unit = product.rows[-1].extent if along and len(product.rows) > 1 else 1
        if product.crossed and len(product.rows) > 1 and product.windows is None:
            # Rows that are stored side by side, in vectors of the innermost of their loops.
            self._row_unit = lcm(self._row_unit, gcd(product.rows[-1].extent, cost.width))
        sums = product.combiners
        self._rounds = sums is not None and any(op.name in ROUNDING for op in sums)

    def tilings(self) -> Iterator[Tiling]:
        """All of them, with chunks for all threads."""
        for rows, lanes in self.register_tiles():
            yield from self._with_tile(rows, lanes)

    def register_tiles(self) -> Iterator[tuple[int, int]]:
        """Rows and lanes of the register tiles that fit into registers, and divide windows."""
        if self._unit is not None:
            yield from self._unit_tiles(self._unit)
            return
        registers, width = self._cost.target.vector_registers, self._cost.width
        carried = len(self._product.results)
        # All rows at once, where columns come from far away: then they come once.
        streams = self._streams and self._rows <= (registers - 2) // carried
        windows = self._product.windows
        for vectors in VECTORS:
            if vectors > 1 and (vectors - 1) * width >= self._columns:
                break
            most = (registers - 1 - vectors) // (vectors * carried)
            for rows in range(self._rows if streams else 1, min(most, self._rows) + 1):
                if windows is None or windows.run % rows == 0:
                    yield rows, vectors * width

    def _unit_tiles(self, unit: TileUnit) -> Iterator[tuple[int, int]]:
        """Rows and columns whose sums, rows and columns have registers of a unit of tiles."""
        rows, columns, _ = unit.shape
        for down in range(1, unit.registers):
            for across in VECTORS:
                if down * across + down + across > unit.registers:
                    break
                if (down - 1) * rows < self._rows and (across - 1) * columns < self._columns:
                    yield min(down * rows, self._rows), across * columns

    def _with_tile(self, rows: int, lanes: int) -> Iterator[Tiling]:
        """The tilings with a register tile."""
        threads = self._cost.threads
        for row_pieces, column_pieces in self._chunks():
            for tiling in (
                self._tiling(rows, lanes, row_pieces, column_pieces),
                self._resident_results(rows, lanes, row_pieces, column_pieces),
                *self._windows_in_passes(rows, lanes, row_pieces, column_pieces),
            ):
                for each in self._traversals(tiling):
                    if not self._fits(each):
                        continue
                    if row_pieces * column_pieces == 1:
                        yield each
                    if threads > 1 and self._cost.pieces(each) > 1:
                        yield each._replace(threads=threads)

    def _chunks(self) -> Iterator[tuple[int, int]]:
        """Numbers of chunks along M and N."""
        threads, batch = self._cost.threads, self._cost.batch
        yield 1, 1
        if threads == 1 or batch % threads == 0 or batch >= 8 * threads:
            return
        for rows in range(1, threads + 1):
            if threads % rows == 0:
                yield rows, threads // rows

    def _traversals(self, tiling: Tiling | None) -> Iterator[Tiling]:
        """A tiling, and the one whose register tiles go along rows of the results first.

        Where there are few steps, to store results takes the time, and is faster in long runs.
        """
        if tiling is None:
            return
        yield tiling
        height = lcm(tiling.rows, self._row_unit)
        product = self._product
        if product.windows is not None or product.waits or self._unit is not None:
            return
        if self._cost.result_memory_time(tiling) < self._steps / self._cost.width:
            return
        columns = min(tiling.column_block, self._columns)
        near = columns * self._steps * self._size <= self._l2 // 2
        further = tiling.row_block > height and tiling.column_block > tiling.lanes
        if tiling.depth >= self._steps and further and near:
            yield tiling._replace(row_block=height)

    def _fits(self, tiling: Tiling) -> bool:
        """Whether panels of a tile that one thread computes have room on its stack."""
        if self._cost.available is None:
            return True
        # Rows of pixels take more than that.
        return not self._cost.by_rows and self._cost.panel_bytes(tiling) <= TILE_BYTES

    # Tilings with one register tile and numbers of chunks

    def _tiling(self, rows: int, lanes: int, row_pieces: int, column_pieces: int) -> Tiling | None:
        """The tiling with blocks for the caches."""
        if -(-self._rows // rows) < row_pieces:
            return None
        if self._unit is not None:
            depth = _whole_steps(self._steps, self._unit.shape[2] // self._unit.in_a_word)
            return self._blocked(rows, lanes, depth, depth, row_pieces, column_pieces, False)
        streaming = self._streams and self._rows <= rows
        # Rows that are used in place need no room, however many steps there are.
        in_place = self._product.windows is not None
        depth = self._steps if in_place else self._depth(STREAMS if streaming else MAX_DEPTH)
        chain = self._sum_chunk(depth)
        return self._blocked(rows, lanes, depth, chain, row_pieces, column_pieces, streaming)

    def _resident_results(
        self, rows: int, lanes: int, row_pieces: int, column_pieces: int
    ) -> Tiling | None:
        """A tiling of few rows and columns and many steps that reads each operand once.

        All results of a chunk wait in the private cache, beside both operands of a pass. None if
        there is no room for them, or no need.
        """
        product = self._product
        if product.windows is not None or product.waits or self._unit is not None:
            return None
        if self._cost.by_rows or self._steps <= MAX_DEPTH or not self._packs_rows(rows, False):
            return None
        tiles, panels = -(-self._rows // rows), -(-self._columns // lanes)
        if tiles < row_pieces or panels < column_pieces:
            return None
        down, across = -(-tiles // row_pieces) * rows, -(-panels // column_pieces) * lanes
        results = len(product.results) * down * across * self._size
        room = (self._l2 // 2 - results // 2) // max(1, (down + across) * self._size)
        if results > self._l2 // 2 or room < 1:
            return None
        depth = self._depth(room)
        if depth < MIN_PASS or depth >= self._steps:
            return None
        return Tiling(
            *(rows, lanes, depth, self._sum_chunk(depth), min(down, self._rows)),
            *(min(across, self._columns), row_pieces, column_pieces),
            pack_rows=True,
            pack_columns=True,
            threads=1,
        )

    def _windows_in_passes(
        self, rows: int, lanes: int, row_pieces: int, column_pieces: int
    ) -> Iterator[Tiling]:
        """Tilings of rows in windows whose steps go through more than the private cache has.

        Each row of a gradient of weights meets all pixels. A pass goes through so few that these
        stay near for all rows, whose results wait in the private cache: as many as there is room
        for, or one chunk of the sum. None if there is no need.
        """
        product, windows, size = self._product, self._product.windows, self._size
        if windows is None or product.waits or self._cost.by_rows:
            return
        if self._unit is not None or self._packs_rows(rows, False):
            return
        tiles, panels = -(-self._rows // rows), -(-self._columns // lanes)
        if tiles < row_pieces or panels < column_pieces:
            return
        down, panels_per_chunk = -(-tiles // row_pieces) * rows, -(-panels // column_pieces)
        panel = len(product.results) * down * lanes * size
        most = self._l2 // WAITING // panel
        span = self._cost.footprints.span
        if most == 0 or span(self._rows, self._steps) <= self._l2 // 2:
            return
        across = _even(panels_per_chunk, min(panels_per_chunk, most)) * lanes
        room = self._l2 // 4 * 3 - panel * (across // lanes)
        largest = windows.pass_steps(self._steps - 1)
        while across * largest * size + span(self._rows, largest) > room > 0:
            if largest < MIN_PASS:
                return
            largest = windows.pass_steps(largest - 1)
        for depth in dict.fromkeys((largest, windows.pass_steps(min(largest, 2 * SUM_CHUNK)))):
            if depth >= MIN_PASS:
                yield Tiling(
                    *(rows, lanes, depth, self._sum_chunk(depth), min(down, self._rows)),
                    *(min(across, self._columns), row_pieces, column_pieces),
                    pack_rows=False,
                    pack_columns=True,
                    threads=1,
                )

    # Blocks

    def _blocked(
        self,
        rows: int,
        lanes: int,
        depth: int,
        chain: int,
        row_pieces: int,
        column_pieces: int,
        streaming: bool,
    ) -> Tiling | None:
        """A tiling with the blocks that suit it; None if it has too few columns, or no use."""
        product = self._product
        pack_rows = self._packs_rows(rows, streaming)
        if product.windows is not None and pack_rows:
            return None
        tiles = ceil(ceil(self._rows / rows) / row_pieces)
        wanted = self._block_bytes(tiles * rows * depth * self._size, depth, pack_rows, streaming)
        column_block = self._column_block(lanes, column_pieces, wanted)
        if column_block is None:
            return None
        # Rows of operands stay in the private cache, and results while they wait.
        row = max(depth, column_block) if product.waits else depth
        row_block = self._row_block(rows, tiles, tiles * rows * row * self._size)
        pack_columns = not self._cost.in_place or (tiles >= MIN_REUSE and not self._cost.dense)
        pack_columns |= any(o.kept for o in product.operands if not o.of_rows)
        return Tiling(
            *(rows, lanes, depth, chain, row_block, column_block, row_pieces, column_pieces),
            pack_rows=pack_rows,
            pack_columns=pack_columns,
            threads=1,
        )

    def _column_block(self, lanes: int, column_pieces: int, wanted: int) -> int | None:
        """The N block whose columns have ``wanted`` bytes in all steps; None: too few columns."""
        columns = self._product.columns
        # Whole tiles, and whole rows of what is copied row by row.
        unit = lanes
        if self._cost.by_rows or (self._product.waits and len(columns) > 1):
            unit = lcm(lanes, columns[-1].extent)
        units = -(-self._columns // unit)
        if units < column_pieces:
            return None
        units_per_chunk = -(-units // column_pieces)
        nbytes = units_per_chunk * unit * self._steps * self._size
        blocks = min(units_per_chunk, max(1, ceil(nbytes / wanted)))
        block = _even(units_per_chunk, -(-units_per_chunk // blocks)) * unit
        return min(block, self._columns)

    def _row_block(self, rows: int, tiles: int, nbytes: int) -> int:
        """The M block of ``tiles`` tiles of a chunk, which have ``nbytes`` in the private cache."""
        blocks = min(tiles, max(1, ceil(nbytes / (self._l2 // 2))))
        unit = lcm(rows, self._row_unit)
        return min(-(-tiles * rows // (blocks * unit)) * unit, self._rows)

    def _block_bytes(self, used: int, depth: int, pack_rows: bool, streaming: bool) -> int:
        """Bytes for all steps of a block of columns, beside ``used`` bytes of rows."""
        cost = self._cost
        if streaming:
            return self._l2 // STREAMED // max(1, self._rows) * self._steps
        if self._prepacked and not pack_rows and cost.unpacked_bytes <= self._l2 // 2:
            # Nothing is copied for a block, so one panel at a time is all that need be near.
            return 1
        if cost.available is not None:
            # A panel on a thread's stack.
            return min(self._l2, TILE_BYTES) // 2
        most = self._l2 // 2 if cost.by_rows else 4 * self._l2
        if pack_rows and used > self._l2 // 2:
            return most
        # Rows are used for each block of columns again, which are used while they are near.
        near = self._l2 // RESIDENT
        if not pack_rows and used <= near:
            # Rows stay, beside a block's columns and what these are copied from.
            near = (4 * self._l2 // 5 - used) // 2
        return min(most, near * self._steps // depth)

    def _packs_rows(self, rows: int, streaming: bool) -> bool:
        """Whether rows are copied."""
        conflicts = self._cost.footprints.conflicts
        return any(
            o.in_place is None or (conflicts(o, rows) and not streaming)
            for o in self._product.operands
            if o.of_rows
        )

    # The K block, and chunks of its sum

    def _depth(self, most: int) -> int:
        """The K block of at most ``most`` steps: equal parts of whole inner loops."""
        if self._steps <= most:
            return self._steps
        inner = 1
        for var in reversed(self._product.steps):
            if inner * var.extent > most:
                break
            inner *= var.extent
        parts = -(-self._steps // inner)
        passes = -(-self._steps // most)
        return -(-parts // passes) * inner

    def _sum_chunk(self, depth: int) -> int:
        """K iterations of a pass that are summed before they are added to the total."""
        longest = SUM_CHUNK if self._product.unit is None else UNIT_SUM_CHUNK
        if not self._rounds or depth <= 2 * longest:
            return depth
        windows = self._product.windows
        if windows is not None:
            return windows.chain(longest)
        return -(-depth // round(depth / longest))


def _whole_steps(steps: int, words: int) -> int:
    """The K block, divisible by the unit's ``words`` unless it is all of K."""
    most = MAX_DEPTH // words
    if steps <= MAX_DEPTH or steps % words:
        return steps
    groups = steps // words
    part = max(d for d in range(1, most + 1) if groups % d == 0)
    # Short parts take longer to begin and to end than larger panels to come from further away.
    return part * words if 4 * part >= most else steps


def _even(count: int, most: int) -> int:
    """The size of a block, at least half of ``most``, with which most of all blocks are full.

    Threads get whole blocks, so what the last one lacks is time that a thread waits.
    """
    return min(range(-(-most // 2), most + 1), key=lambda size: (-(-count // size) * size, -size))
