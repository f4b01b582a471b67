"""Predicted times of the tilings of a product.

Times are in multiply-adds of one vector, issued one after the other by a core. A step of a
register tile takes as long as the longest of its multiply-adds, its loads, and the time in which
one of its sums is ready for the next step.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from polyblocks.affine.analysis.contractions import Operand
from polyblocks.affine.contraction.copies import operand_time, result_time
from polyblocks.affine.contraction.products.flat_product import FlatProduct
from polyblocks.affine.contraction.tiling import Tiling
from polyblocks.affine.contraction.tilings.core_times import CoreTimes, transfer_time
from polyblocks.affine.contraction.tilings.operand_footprints import (
    OperandFootprints,
    result_traffic,
)
from polyblocks.affine.cost import rates
from polyblocks.affine.cost.constants import (
    CHUNK_END,
    DELINEARIZATION,
    K_LOOP_OVERHEAD,
    LOAD_TIEBREAK,
    LOOP_EXIT,
    NOT_HIDDEN,
    PREDICTABLE_TRIPS,
    PREDICTED_EXIT,
    RUN_START,
)
from polyblocks.affine.element import element_bytes
from polyblocks.affine.model import Access, AffineAccess, Load
from polyblocks.target import TargetDescription, TileUnit

#: Vectors of a row of columns that is as good as a panel of them.
MOST_VECTORS = 8
#: More than rounding can add to a bound.
ROUNDED_DOWN = 1 - 1e-9


@dataclass
class TilingCost:
    """The cost of tilings of a product.

    Attributes:
        product: what is computed.
        target: for which chip.
        width: lanes of one vector.
        available: threads for it; None for all that there are.
        lasting: bytes of what is the same at every call of the program.
        rows, columns, steps, batch: M, N, K and the number of products.
        threads: that share the product.
        size: bytes of an operand's element.
        core: what the target's cores take.
        unit: a unit of tiles, which rows and columns are multiples of; None: vectors.
        footprints: of the operands along M.
        unpacked_bytes: of operands along M that may be used in place.
        by_rows: whether an operand along N is packed row by row.
        in_place: whether all operands along N that are not prepacked can be used in place.
        dense: in a tile, whether they are so short rows then that they are as good as panels.
    """

    product: FlatProduct
    target: TargetDescription
    width: int
    available: int | None = None
    lasting: int = 0

    def __post_init__(self) -> None:
        product = self.product
        self.rows, self.columns, self.steps = (
            v.extent for v in (product.row, product.column, product.step)
        )
        self.batch = prod(v.extent for v in product.batch)
        self.threads = self.available or self.target.shared_level.size
        self.size = max(element_bytes(o.value.type) for o in product.operands)
        unit = product.unit
        self.core = CoreTimes.of(self.target, unit, self.width, self.threads)
        self.unit = unit if isinstance(unit, TileUnit) else None
        self.footprints = OperandFootprints(product, self.core.l1, self.size)
        loads = {o.in_place for o in product.operands if o.of_rows and o.in_place is not None}
        self.unpacked_bytes = self.size * sum(
            min(self.rows * self.steps, load.buffer.numel // self.batch) for load in loads
        )
        self.by_rows = any(product.by_rows(o) for o in self.columns_to_load)
        self.in_place = all(self._is_contiguous(o) for o in self.columns_to_load)
        lanes = self.columns <= MOST_VECTORS * self.width
        # Other tiles would copy them again.
        self.dense = self.available is not None and lanes and self.in_place
        rate = self.core.unit_rate
        self._packing = {
            o: 0.0 if o.kept else rate * operand_time(product, o, self.width)
            for o in product.operands
        }
        #: Bytes of what the product touches, and of what else lasts in the program.
        code = [n for o in product.operands for n in o.nodes] + [*product.before, *product.after]
        buffers = {n.buffer.base for n in code if isinstance(n, Access)}
        self._touched = max(sum(b.nbytes for b in buffers), self.lasting)
        self._fetching = {o: self._fetch_time(o) for o in product.operands}
        self._storing = rate * result_time(product, self.width)
        self._window_time = self._time_of_windows()
        self._traffic = result_traffic(product)
        self._delinearization = self._delinearization_time()

    @property
    def columns_to_load(self) -> list[Operand]:
        """Operands along N but for prepacked ones, which are in order and cost nothing."""
        return [o for o in self.product.operands if not o.of_rows and not o.kept]

    def pieces(self, tiling: Tiling) -> int:
        """Chunks that threads do."""
        return self.batch * tiling.row_pieces * tiling.column_pieces

    def panel_bytes(self, tiling: Tiling) -> int:
        """Bytes of what is copied for a block, and of sums that wait between passes."""
        steps = tiling.depth if tiling.by_pass(self.product) else self.steps
        used = tiling.column_block * steps if tiling.pack_columns else 0
        used += tiling.row_block * tiling.depth if tiling.pack_rows else 0
        used += tiling.row_block * tiling.column_block if tiling.depth < self.steps else 0
        return used * self.size

    def seconds(self, time: float) -> float | None:
        """Seconds of ``time`` multiply-adds of a vector; None if the rate is unknown."""
        return None if self.core.seconds is None else time * self.core.seconds

    def time(self, tiling: Tiling) -> float:
        """Time of the thread with most to do, in multiply-adds of a vector."""
        chunks_per_thread = -(-self.pieces(tiling) // tiling.threads)
        row_blocks = -(-self.rows // tiling.row_block)
        rows = min(self.rows, -(-row_blocks // tiling.row_pieces) * tiling.row_block)
        column_blocks = -(-self.columns // tiling.column_block)
        blocks_per_chunk = -(-column_blocks // tiling.column_pieces)
        columns = min(self.columns, blocks_per_chunk * tiling.column_block)
        total = self.steps * self._tiles(tiling, rows, columns)
        for operand in self.product.operands:
            if operand.of_rows:
                if tiling.pack_rows or operand.in_place is None:
                    # Fetches of unpacked operands overlap their many multiply-adds.
                    each = self._packing[operand] + self._fetching[operand]
                    if tiling.row_block * tiling.depth * self.size > self.core.l1.size:
                        # Lines of the panel come from the next cache, and go there again.
                        each = max(each, 2 * self.core.l2_load / self.width)
                    total += each * blocks_per_chunk * rows * self.steps
                continue
            total += self._fetching[operand] * columns * self.steps
            if tiling.pack_columns or operand.in_place is None:
                total += self._packing[operand] * columns * self.steps
        total += self._unpacked_row_time(tiling, blocks_per_chunk) + self._storing * rows * columns
        # Stores that memory does not keep up with hide most of the arithmetic, and not the reverse.
        memory = rows * columns * self.result_memory_time(tiling)
        total = max(total, memory + NOT_HIDDEN * total)
        return chunks_per_thread * total + (self.core.start if tiling.threads > 1 else 0.0)

    def least_time(self, tiles: Iterable[tuple[int, int]]) -> float:
        """A lower bound of :meth:`time`, for all tilings with register tiles of these sizes.

        Threads are equally busy with whole register tiles, with stores and with the operands that
        all tilings fetch or copy.
        """
        each = min((self._least_step(*tile) for tile in tiles), default=0.0)
        total = each * self.rows * -(-self.columns // self.width) * self.steps
        total += self.rows * self.columns * self._storing + self._window_time
        for operand in self.product.operands:
            copied = operand.in_place is None or not (operand.of_rows or self.in_place)
            time = self._packing[operand] if copied else 0.0
            if copied or not operand.of_rows:
                time += self._fetching[operand]
            total += time * (self.rows if operand.of_rows else self.columns) * self.steps
        return self.batch * total / self.threads * ROUNDED_DOWN

    def _least_step(self, rows: int, lanes: int) -> float:
        """A step of a register tile, for each of its vectors; smaller ones at edges take longer."""
        vectors = lanes // self.width
        if self.unit is not None:
            return self._busy(-(-rows // self.unit.shape[0]), vectors) / (rows * vectors)
        return self._issue_time(rows, vectors) / (rows * vectors)

    def result_memory_time(self, tiling: Tiling) -> float:
        """Memory time of a result, and of what else the epilogue moves for each."""
        moved, footprint = self._traffic
        if footprint <= self.core.l2_bytes:
            return 0.0
        run = tiling.column_block if tiling.row_block <= tiling.rows else tiling.lanes
        if run >= self.columns and self.product.in_order:
            # Rows behind each other are one.
            run *= self.rows
        return self._memory_time(moved * (1 + RUN_START / (run * self.size)))

    def _memory_time(self, nbytes: float) -> float:
        """Time of bytes of one thread from where the program finds its arrays; 0 if unknown.

        It gets its share of the bandwidth, whether other threads want theirs or not.
        """
        rate = rates.returning_rate(self.target, self._touched, self.threads)
        if rate is None or self.core.seconds is None:
            return 0.0
        return nbytes * self.threads / rate / self.core.seconds

    # Terms that are the same for all tilings

    def _is_contiguous(self, operand: Operand) -> bool:
        """Whether neighbouring columns of an operand are neighbours in memory."""
        if operand.in_place is None:
            return False
        (place,) = operand.in_place.index
        return place.coefficient(self.product.column) == 1

    def _fetch_time(self, operand: Operand) -> float:
        """Time of an element from memory: of large buffers, and of prepacked panels.

        All that is kept for a program goes through a private cache between two uses of a panel. The
        others stay there.
        """
        nearest = self.core.l2_bytes
        buffers = {n.buffer for n in operand.nodes if isinstance(n, Load)}
        sizes = {b: b.bytes_per_element for b in buffers}
        large = [size for b, size in sizes.items() if b.numel // self.batch * size > nearest]
        if operand.kept:
            large = [self.size] if self.lasting > nearest else []
        return self._memory_time(sum(large))

    def _time_of_windows(self) -> float:
        """Time to load unpacked rows from the shared cache."""
        if self.product.windows is None:
            return 0.0
        memory = self.target.memory
        shared = next((level for level in memory if level.shared_by > 1), memory[-1])
        return transfer_time(self.core.seconds, shared, self.unpacked_bytes * self.threads)

    def _delinearization_time(self) -> float:
        """Time to find a row's results, in a tile whose rows are in several loops."""
        if self.product.waits:
            return 0.0
        indices = [
            e
            for n in (*self.product.before, *self.product.after)
            if isinstance(n, AffineAccess)
            for e in n.index
        ]
        scattered = any(e.coefficient(self.product.row) is None for e in indices)
        return DELINEARIZATION if scattered else 0.0

    # Parts of a tiling's time

    def _unpacked_row_time(self, tiling: Tiling, blocks: int) -> float:
        """Load rows in windows once, or per N block if they exceed the largest private cache."""
        rows = self.unpacked_bytes // tiling.row_pieces
        panel = tiling.column_block * self.steps * self.size
        times = 1 if rows + panel <= self.core.l2_bytes else blocks
        return self._window_time / tiling.row_pieces * times

    def _tiles(self, tiling: Tiling, rows: int, columns: int) -> float:
        """One step of all register tiles of a chunk."""
        tile = self._unit_step if self.unit is not None else self._vector_step

        def panel(vectors: int) -> float:
            whole, rest = divmod(rows, tiling.rows)
            tiles = whole * tile(tiling, tiling.rows, vectors)
            tiles += tile(tiling, rest, vectors) if rest else 0.0
            # The correction of the offset is one more row of every block.
            blocks = 0 if self.product.offset is None else -(-rows // tiling.row_block)
            return tiles + blocks * tile(tiling, 1, vectors)

        whole, rest = divmod(columns, tiling.lanes)
        return whole * panel(tiling.lanes // self.width) + -(-rest // self.width) * panel(1)

    def _vector_step(self, tiling: Tiling, height: int, vectors: int) -> float:
        """One step of a register tile of ``height`` rows and ``vectors`` vectors of columns."""
        windows = self.product.windows
        far = self._cache_time(tiling, height, vectors)
        joined = CHUNK_END * height * vectors / tiling.chain if tiling.chain < self.steps else 0.0
        if windows is not None:
            run = min(windows.steps[-1], tiling.chain)
            joined += (LOOP_EXIT if run > PREDICTABLE_TRIPS else PREDICTED_EXIT) / run
        if self.product.rows[-1].extent % tiling.rows:
            joined += height * self._delinearization / self.steps
        return self._issue_time(height, vectors, far) + joined

    def _issue_time(self, height: int, vectors: int, far: float = 0.0) -> float:
        """A step's multiply-adds and loads; ``far`` is the time of loads from further caches."""
        core = self.core
        loads = vectors * core.vector_load + height * core.load
        # Of tiles with as many multiply-adds the one with fewer loads.
        longest = max(height * vectors, core.in_flight, loads, far)
        return longest + K_LOOP_OVERHEAD + LOAD_TIEBREAK * loads

    def _cache_time(self, tiling: Tiling, height: int, vectors: int) -> float:
        """Time of a register tile's step in caches behind the first one.

        A panel of columns, and rows in windows, are used by the next tile again, if they stay. All
        panels of a block are used before, if it has one tile of rows.
        """
        core, lanes = self.core, vectors * self.width
        if tiling.row_block <= tiling.rows < self.rows:
            lanes = max(lanes, min(tiling.column_block, self.columns))
        panel = lanes * tiling.depth * self.size
        lines, touched = self.footprints.lines(height, tiling.depth)
        stays = panel + touched <= core.l2_bytes // 4 * 3
        load = core.l2_load if stays else core.shared_load
        far = vectors * load if panel > core.l1.size // 2 else 0.0
        return far + (lines * load if panel + touched > core.l1.size else 0.0)

    def _unit_step(self, tiling: Tiling, height: int, vectors: int) -> float:
        """One step of a tile of a unit, in multiply-adds of a vector.

        Lines of operands are loaded once for all of a tile's steps: of rows as many as the unit has
        words in a row, of columns one in each step. Rows are used for all panels, one after the
        other. Sums are stored, and loaded again.
        """
        core, unit = self.core, self.unit
        assert unit is not None
        down = -(-height // unit.shape[0])
        lines = down + vectors
        used = tiling.rows * tiling.depth * self.size
        far = lines if used > core.l1.size // 2 else vectors
        busy = self._busy(down, vectors)
        waits = 2 * core.vector_load * height * vectors / tiling.depth
        return max(busy, lines * core.vector_load, far * core.l2_load) + waits

    def _busy(self, down: int, vectors: int) -> int:
        """Time of a unit's multiply-adds in one step of ``down`` x ``vectors`` of its tiles."""
        assert self.unit is not None
        return self.unit.shape[0] * max(down * vectors, self.unit.in_flight)
