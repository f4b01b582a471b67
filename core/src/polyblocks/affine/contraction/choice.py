"""Which tiling a contraction gets: the one that the model predicts to be the fastest.

Times are in multiply-adds of one vector, issued one after the other by a core. A step of a
register tile takes as long as the longest of its multiply-adds, its loads, and the time in which
one of its sums is ready for the next step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil, gcd, lcm, prod

from polyblocks.affine.access import address
from polyblocks.affine.analysis.contractions import Contraction
from polyblocks.affine.analysis.reductions import ROUNDING
from polyblocks.affine.contraction.copies import (
    along_rows,
    elements_apart,
    operand_time,
    result_time,
)
from polyblocks.affine.contraction.kept_panels import can_be_kept
from polyblocks.affine.contraction.product import Operand, Product, products_of
from polyblocks.affine.contraction.tiling import Tiling
from polyblocks.affine.contraction.units import in_a_word
from polyblocks.affine.contraction.windows import innermost
from polyblocks.affine.cost import rates
from polyblocks.affine.cost.tile_cost import RUN_START
from polyblocks.affine.element import element_bytes
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.flat_views import FlatViews
from polyblocks.affine.model import AffineAccess, Buffer, Load
from polyblocks.affine.prologue import Prologue
from polyblocks.target import MatrixUnit, TargetDescription

#: Vectors of a register tile's row: they are written as one, which code generation halves.
VECTORS = (1, 2, 4)
#: Steps of one pass, at most: the panels of a register tile stay in the private cache.
MAX_DEPTH = 1024
#: Steps whose sums are added up before they are added to others.
CHAIN = 128
#: The same of a matrix unit's steps, which are several each. Its operands have so few bits that
#: results are rounded to as few, or that longer chains would do no harm.
UNIT_CHAIN = 512
#: The same, at least, where all results wait: each pass loads and stores them again.
MIN_PASS = 64
#: Part of the private cache for results that wait for the next pass.
WAITING = 3
#: Steps of one pass over columns that are used once: rows of memory that are read side by side.
STREAMS = 32
#: Part of the private cache for columns that are used by one block of rows only.
RESIDENT = 2
#: Bytes of panels of a contraction that is a part of a tile.
TILE_BYTES = 768 * 1024
#: Rows, columns and steps of a contraction that has tiles, at least.
MIN_EXTENT = 4
#: Number of steps that is too large for straight-line code, for any number of rows or columns.
MANY_STEPS = 65
#: Rows or columns that are enough for all threads then, which do not share steps.
MANY_ROWS = 64
#: Multiply-adds in flight that keep a core busy, and loads that it starts in the time of one, where
#: the target's description does not say.
IN_FLIGHT, LOADS = 8, 1.0
#: Tiebreak for loads hidden by multiply-adds, in multiply-adds.
LOADED = 0.01
#: K loop overhead per step, in multiply-adds: its branch and its counter.
STEP = 0.2
#: Finding where a row's results are stored, if a tile's rows are not in one loop of the program.
DIGITS = 12.0
#: The end of a loop around other steps' loop, whose last branch is not foreseen.
LOOP_END = 24.0
#: Iterations that a core counts, so that it foresees the last one, and what such an end takes.
FORESEEN, FORESEEN_END = 16, 4.0
#: Register tiles one above the other from which on columns are copied.
MIN_REUSE = 4


def has_tiles(target: TargetDescription) -> bool:
    """Whether contractions have tiles on a target: with vectors, and no blocks of threads."""
    return target.multiprocessor is None and target.vector_bits > 0


def is_tiled(contraction: Contraction | None, target: TargetDescription) -> bool:
    """Whether a nest that is this contraction, or None, has tiles on a target.

    Few rows, columns or steps are better off as straight-line code, unless other things make loops
    of them.
    """
    return contraction is not None and has_tiles(target) and has_enough(contraction)


def has_enough(contraction: Contraction) -> bool:
    """Whether a contraction has enough rows, columns and steps for tiles of any kind."""
    count = fewest(contraction)
    sides = (contraction.rows, contraction.columns)
    most = max(prod(v.extent for v in side) for side in sides)
    many = contraction.reduction.trips >= MANY_STEPS and most >= MANY_ROWS
    return count >= MIN_EXTENT or (count > 1 and many)


def fewest(contraction: Contraction) -> int:
    """Rows, columns or steps, whichever are the fewest; 0 for one that is unrolled."""
    if not contraction.reduction.loops:
        return 0
    sides = (contraction.rows, contraction.columns, contraction.reduction.order)
    return min(prod(v.extent for v in side) for side in sides)


@dataclass(frozen=True)
class Tiled:
    """A contraction as the product that it is tiled as.

    Attributes:
        cost: the product, and what its tilings cost.
        tiling: the best one.
        seconds: the predicted time; None if the target's rate is unknown.
    """

    cost: TilingCost
    tiling: Tiling
    seconds: float | None


def tilings_of(
    contraction: Contraction,
    views: FlatViews,
    target: TargetDescription,
    threads: int | None,
    prologue: Prologue | None = None,
) -> list[Tiled]:
    """The best tiling of each product that a contraction can be seen as, the fastest one first.

    Args:
        contraction: what is tiled.
        views: one-dimensional views of the program's buffers.
        target: the chip.
        threads: threads for it; None for all that there are.
        prologue: of the program, if it has constant arguments, or of the loop that this is in.
    """
    found: list[tuple[float, Tiled]] = []
    for product in candidates_of(contraction, views, target, prologue):
        cost = cost_of(product, target, threads, prologue)
        tiling = choose_tiling(cost)
        if tiling is not None:
            time = cost.cost(tiling)
            # Units differ in what a multiply-add of theirs takes.
            seconds = cost.seconds(time)
            found.append((time if seconds is None else seconds, Tiled(cost, tiling, seconds)))
    return [tiled for _, tiled in sorted(found, key=lambda one: one[0])]


def candidates_of(
    contraction: Contraction,
    views: FlatViews,
    target: TargetDescription,
    prologue: Prologue | None = None,
) -> list[Product]:
    """The products that a contraction can be seen as, with the operands that can be kept."""
    found = products_of(contraction, views, target)
    if prologue is not None:
        for product in found:
            for operand in product.operands:
                operand.kept = can_be_kept(operand, product, prologue)
    return found


def cost_of(
    product: Product, target: TargetDescription, threads: int | None, prologue: Prologue | None
) -> TilingCost:
    """The cost of tilings of a product; see :func:`tilings_of`."""
    bits = max(8 * element_bytes(v.type) for v in product.results)
    lasting = 0 if prologue is None else prologue.lasting_bytes
    return TilingCost(product, target, target.vector_bits // bits, threads, lasting)


def choose_tiling(cost: TilingCost) -> Tiling | None:
    """The tiling of a product on a target; None if it has none."""
    best: tuple[float, Tiling] | None = None
    for tiling in cost.candidates():
        time = cost.cost(tiling)
        # Ties go to the first one.
        if best is None or time < best[0]:
            best = time, tiling
    return None if best is None else best[1]


@dataclass
class TilingCost:
    """The tilings of a product, and what they cost.

    Attributes:
        product: what is computed.
        target: for which chip.
        width: lanes of one vector.
        available: threads for it; None for all that there are.
        lasting: bytes of what is the same at every call of the program.
    """

    product: Product
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
        team = self.target.shared_level.size
        self.threads = self.available or team
        self.size = max(element_bytes(o.value.type) for o in product.operands)
        private = [m for m in self.target.memory if m.size and m.shared_by == 1]
        self.l1 = self.target.memory[0]
        self.in_flight = self.target.multiply_adds_in_flight or IN_FLIGHT
        # A load of one element, and of a vector, which the first cache may take longer for.
        self.load = 1 / (self.target.loads_per_multiply_add or LOADS)
        rate = rates.lane_rate(self.target)
        #: Seconds of one multiply-add of a vector on one core.
        self.each = None if rate is None else team * self.width / rate
        #: The unit's multiply-add rate over that of vectors.
        self.scale = 1.0
        unit = product.unit
        #: A unit of tiles; rows and columns are multiples of its own.
        self.unit = unit if unit is not None and unit.has_tiles else None
        if unit is not None:
            self.in_flight = unit.in_flight or self.in_flight
            if self.each is not None and rate is not None and unit.flops:
                self.scale = unit.flops / (2 * in_a_word(unit)) / rate
                self.each /= self.scale
            self.load *= self.scale
        self.vector_load = self.load
        #: Starting the threads, in multiply-adds of a vector.
        self.overhead = 0.0
        if self.each is not None and self.l1.bandwidth:
            size = self.target.vector_bits // 8
            self.vector_load = max(self.load, size / self.l1.bandwidth / self.each)
            self.overhead = self.target.shared_level.overhead / self.each
        #: A vector of a panel that does not stay in the first cache, from the next one.
        self.far_load = 0.0
        if self.each is not None and len(private) > 1 and private[1].bandwidth:
            self.far_load = self.target.vector_bits // 8 / private[1].bandwidth / self.each
        self.l2 = max((m.size for m in private), default=1 << 18)
        #: The same from the cache that threads share, by all of them at once.
        self.shared_load = self.far_load
        shared = next((m for m in self.target.memory if m.shared_by > 1), None)
        if self.each is not None and shared is not None and shared.bandwidth:
            vector = self.target.vector_bits // 8
            load = vector * self.threads / shared.bandwidth / self.each
            self.shared_load = max(self.far_load, load)
        # Prepacked operands are in order and cost nothing.
        of_columns = [o for o in product.operands if not o.of_rows and not o.kept]
        self.kept = not of_columns and any(o.kept for o in product.operands)
        rows = {o.load for o in product.operands if o.of_rows and o.load is not None}
        #: Bytes per step of rows that are not packed.
        self.row_bytes = self.size * sum(
            min(self.rows * self.steps, n.buffer.numel // self.batch) for n in rows
        )
        self.by_rows = any(product.by_rows(o) for o in of_columns)
        # Rows that are copied along their loops.
        along = product.windows is None and self.unit is None
        along &= any(along_rows(product, o, self.width) for o in product.operands if not o.kept)
        self.row_unit = product.rows[-1] if along and len(product.rows) > 1 else 1
        self.in_place = all(self._in_order(o) for o in of_columns)
        large = self.columns * self.steps * self.size > self.l2
        self.streams = bool(of_columns) and self.in_place and large
        self.copies = {
            o: 0.0 if o.kept else self.scale * operand_time(product, o, self.width)
            for o in product.operands
        }
        self.fetches = {o: self._fetched(o) for o in product.operands}
        self.stores = self.scale * result_time(product, self.width)
        self.shared = self._in_windows()
        self._strides: dict[Operand, tuple[int, int]] = {}
        self._spans: dict[tuple[int, int], int] = {}
        #: Bytes that each result moves beyond the registers, and of all buffers that it does so in.
        self.moved = self._moved()
        sums = product.combiners
        #: Results of a row that is found by its digits, in a tile whose rows are in several loops.
        places = [
            e
            for n in (*product.before, *product.after)
            if isinstance(n, AffineAccess)
            for e in n.index
        ]
        scattered = any(e.coefficient(product.row) is None for e in places)
        self.digits = DIGITS if scattered and not product.waits else 0.0
        self.rounds = sums is not None and any(op.name in ROUNDING for op in sums)

    def _moved(self) -> tuple[int, int]:
        """Bytes that are loaded and stored for each result, and those of the buffers."""
        each: dict[Buffer, int] = {}
        for node in (*self.product.before, *self.product.after):
            if isinstance(node, AffineAccess):
                variables = {v for e in node.index for v in e.variables()}
                if {self.product.row, self.product.column} <= variables:
                    # A line is read before it is written.
                    times = 1 if isinstance(node, Load) else 2
                    size = times * node.buffer.bytes_per_element
                    each[node.buffer] = each.get(node.buffer, 0) + size
        return sum(each.values()), sum(b.numel * b.bytes_per_element for b in each)

    def candidates(self) -> Iterator[Tiling]:
        """Register tiles that fit into registers, and pieces for all threads."""
        if self.unit is not None:
            for rows, lanes in self._unit_tiles(self.unit):
                yield from self._in_pieces(rows, lanes)
            return
        registers = self.target.vector_registers
        carried = len(self.product.results)
        # All rows at once, where columns come from far away: then they come once.
        streams = self.streams and self.rows <= (registers - 2) // carried
        for vectors in VECTORS:
            if vectors > 1 and (vectors - 1) * self.width >= self.columns:
                break
            most = (registers - 1 - vectors) // (vectors * carried)
            for rows in range(self.rows if streams else 1, min(most, self.rows) + 1):
                yield from self._in_pieces(rows, vectors * self.width)

    def _in_pieces(self, rows: int, lanes: int) -> Iterator[Tiling]:
        """The tilings with a register tile."""
        for row_pieces, column_pieces in self._pieces():
            for tiling in (
                self._tiling(rows, lanes, row_pieces, column_pieces),
                self._in_whole_pieces(rows, lanes, row_pieces, column_pieces),
                *self._windows_in_passes(rows, lanes, row_pieces, column_pieces),
            ):
                for each in self._traversals(tiling):
                    if not self._fits(each):
                        continue
                    if row_pieces * column_pieces == 1:
                        yield each
                    if self.threads > 1 and self.pieces(each) > 1:
                        yield replace(each, threads=self.threads)

    def _traversals(self, tiling: Tiling | None) -> Iterator[Tiling]:
        """A tiling, and the one whose register tiles go along rows of the results first.

        Where there are few steps, to store results takes the time, and is faster in long runs.
        """
        if tiling is None:
            return
        yield tiling
        height = lcm(tiling.rows, self.row_unit)
        product = self.product
        if product.windows is not None or product.waits or self.unit is not None:
            return
        if self._result_memory(tiling) < self.steps / self.width:
            return
        near = min(tiling.column_block, self.columns) * self.steps * self.size <= self.l2 // 2
        further = tiling.row_block > height and tiling.column_block > tiling.lanes
        if tiling.depth >= self.steps and further and near:
            yield replace(tiling, row_block=height)

    def _unit_tiles(self, unit: MatrixUnit) -> Iterator[tuple[int, int]]:
        """Rows and columns whose sums, rows and columns have registers of a unit of tiles."""
        rows, columns, _ = unit.shape
        for down in range(1, unit.registers):
            for across in VECTORS:
                if down * across + down + across > unit.registers:
                    break
                if (down - 1) * rows < self.rows and (across - 1) * columns < self.columns:
                    yield min(down * rows, self.rows), across * columns

    def _pieces(self) -> Iterator[tuple[int, int]]:
        yield 1, 1
        if self.threads == 1 or self.batch % self.threads == 0 or self.batch >= 8 * self.threads:
            return
        for rows in range(1, self.threads + 1):
            if self.threads % rows == 0:
                yield rows, self.threads // rows

    def _tiling(self, rows: int, lanes: int, row_pieces: int, column_pieces: int) -> Tiling | None:
        if -(-self.rows // rows) < row_pieces:
            return None
        windows = self.product.windows
        if windows is not None and windows.run % rows:
            return None
        if self.unit is not None:
            streaming = False
            depth = _whole_steps(self.steps, self.unit.shape[2] // in_a_word(self.unit))
            return self._blocked(rows, lanes, depth, depth, row_pieces, column_pieces, False)
        streaming = self.streams and self.rows <= rows
        # Rows that are used in place need no room, however many steps there are.
        depth = self.steps if windows else self._depth(STREAMS if streaming else MAX_DEPTH)
        chain = self._chain(depth)
        return self._blocked(rows, lanes, depth, chain, row_pieces, column_pieces, streaming)

    def _in_whole_pieces(
        self, rows: int, lanes: int, row_pieces: int, column_pieces: int
    ) -> Tiling | None:
        """A tiling of few rows and columns and many steps that reads each operand once.

        All results of a piece wait in the private cache, beside both operands of a pass. None if
        there is no room for them, or no need.
        """
        product = self.product
        if product.windows is not None or product.waits or self.unit is not None or self.by_rows:
            return None
        if self.steps <= MAX_DEPTH or not self._packs_rows(rows, False):
            return None
        tiles, panels = -(-self.rows // rows), -(-self.columns // lanes)
        if tiles < row_pieces or panels < column_pieces:
            return None
        down, across = -(-tiles // row_pieces) * rows, -(-panels // column_pieces) * lanes
        results = len(product.results) * down * across * self.size
        depth = self._depth((self.l2 // 2 - results // 2) // max(1, (down + across) * self.size))
        if results > self.l2 // 2 or depth < MIN_PASS or depth >= self.steps:
            return None
        return Tiling(
            *(rows, lanes, depth, self._chain(depth), min(down, self.rows)),
            *(min(across, self.columns), row_pieces, column_pieces),
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
        for, or one chain of additions. None if there is no need.
        """
        product, windows = self.product, self.product.windows
        if windows is None or windows.run % rows or product.waits or self.by_rows:
            return
        if self.unit is not None or self._packs_rows(rows, False):
            return
        tiles, panels = -(-self.rows // rows), -(-self.columns // lanes)
        if tiles < row_pieces or panels < column_pieces:
            return
        down, mine = -(-tiles // row_pieces) * rows, -(-panels // column_pieces)
        panel = len(product.results) * down * lanes * self.size
        most = self.l2 // WAITING // panel
        if most == 0 or self._window_bytes(self.rows, self.steps) <= self.l2 // 2:
            return
        across = _even(mine, min(mine, most)) * lanes
        left = self.l2 // 4 * 3 - panel * (across // lanes)
        roomy = windows.pass_steps(self.steps - 1)
        while across * roomy * self.size + self._window_bytes(self.rows, roomy) > left > 0:
            if roomy < MIN_PASS:
                return
            roomy = windows.pass_steps(roomy - 1)
        for depth in dict.fromkeys((roomy, windows.pass_steps(min(roomy, 2 * CHAIN)))):
            if depth >= MIN_PASS:
                yield Tiling(
                    *(rows, lanes, depth, self._chain(depth), min(down, self.rows)),
                    *(min(across, self.columns), row_pieces, column_pieces),
                    pack_rows=False,
                    pack_columns=True,
                    threads=1,
                )

    def _window_bytes(self, rows: int, depth: int) -> int:
        """The span in bytes that ``rows`` rows use in ``depth`` steps."""
        if (rows, depth) not in self._spans:
            windows = self.product.windows
            extents = None if windows is None else innermost(windows.steps, depth)
            assert extents is not None
            step = Expr(0)
            for extent in extents:
                step = step * extent + Var(extent)
            place = {v: Expr(0) for v in self.product.batch}
            place |= {self.product.row: Expr.of(Var(rows)), self.product.step: step}
            used = 0
            for operand in self.product.operands:
                if operand.of_rows and operand.load is not None:
                    found = address(operand.load.buffer, operand.load.index).substitute(place)
                    low, high = found.range()
                    used += (high - low + 1) * self.size
            self._spans[rows, depth] = used
        return self._spans[rows, depth]

    def _chain(self, depth: int) -> int:
        """Steps of a pass whose sums are added up before they are added to others."""
        longest = CHAIN if self.product.unit is None else UNIT_CHAIN
        if not self.rounds or depth <= 2 * longest:
            return depth
        windows = self.product.windows
        if windows is not None:
            return windows.chain(longest)
        return -(-depth // round(depth / longest))

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
        windows = self.product.windows
        # Blocks of columns: whole tiles, and whole rows of what is copied row by row.
        unit = lanes
        if self.by_rows or (self.product.waits and len(self.product.columns) > 1):
            unit = lcm(lanes, self.product.columns[-1])
        units = -(-self.columns // unit)
        if units < column_pieces:
            return None
        pack_rows = self._packs_rows(rows, streaming)
        tiles = ceil(ceil(self.rows / rows) / row_pieces)
        wanted = self._block_bytes(tiles * rows * depth * self.size, depth, pack_rows, streaming)
        mine = -(-units // column_pieces)
        blocks = min(mine, max(1, ceil(mine * unit * self.steps * self.size / wanted)))
        column_block = _even(mine, -(-mine // blocks)) * unit
        if column_block >= self.columns:
            column_block = self.columns
        # Rows of operands stay in the private cache, and results while they wait.
        row = max(depth, column_block) if self.product.waits else depth
        blocks = min(tiles, max(1, ceil(tiles * rows * row * self.size / (self.l2 // 2))))
        unit = lcm(rows, self.row_unit)
        row_block = -(-tiles * rows // (blocks * unit)) * unit
        if row_block >= self.rows:
            row_block = self.rows
        if windows is not None and pack_rows:
            return None
        pack_columns = not self.in_place or tiles >= MIN_REUSE
        pack_columns |= any(o.kept for o in self.product.operands if not o.of_rows)
        return Tiling(
            *(rows, lanes, depth, chain, row_block, column_block, row_pieces, column_pieces),
            pack_rows=pack_rows,
            pack_columns=pack_columns,
            threads=1,
        )

    def _block_bytes(self, used: int, depth: int, pack_rows: bool, streaming: bool) -> int:
        """Bytes for all steps of a block of columns, beside ``used`` bytes of rows."""
        if streaming:
            return self.l1.size // 2 // max(1, self.rows) * self.steps
        if self.kept and not pack_rows and self.row_bytes <= self.l2 // 2:
            # Nothing is copied for a block, so one panel at a time is all that need be near.
            return 1
        if self.available is not None:
            # A panel on a thread's stack.
            return min(self.l2, TILE_BYTES) // 2
        most = self.l2 // 2 if self.by_rows else 4 * self.l2
        if pack_rows and used > self.l2 // 2:
            return most
        # Rows are used for each block of columns again, which are used while they are near.
        near = self.l2 // RESIDENT
        if not pack_rows and used <= near:
            # Rows stay, beside a block's columns and what these are copied from.
            near = (4 * self.l2 // 5 - used) // 2
        return min(most, near * self.steps // depth)

    def _fits(self, tiling: Tiling) -> bool:
        """Whether panels of a tile that one thread computes have room on its stack."""
        # Rows of pixels take more than that.
        inside = self.available is not None
        return not inside or (not self.by_rows and self.panel_bytes(tiling) <= TILE_BYTES)

    def panel_bytes(self, tiling: Tiling) -> int:
        """Bytes of what is copied for a block, and of sums that wait between passes."""
        steps = tiling.depth if tiling.by_pass(self.product) else self.steps
        used = tiling.column_block * steps if tiling.pack_columns else 0
        used += tiling.row_block * tiling.depth if tiling.pack_rows else 0
        used += tiling.row_block * tiling.column_block if tiling.depth < self.steps else 0
        return used * self.size

    def _depth(self, most: int) -> int:
        """Steps of a pass: equal parts of whole inner loops."""
        if self.steps <= most:
            return self.steps
        inner = 1
        for extent in reversed(self.product.steps):
            if inner * extent > most:
                break
            inner *= extent
        parts = -(-self.steps // inner)
        passes = -(-self.steps // most)
        return -(-parts // passes) * inner

    def _in_order(self, operand: Operand) -> bool:
        """Whether neighbouring columns of an operand are neighbours in memory."""
        if operand.load is None:
            return False
        (place,) = operand.load.index
        return place.coefficient(self.product.column) == 1

    def _packs_rows(self, rows: int, streaming: bool) -> bool:
        """Whether rows are copied."""
        return any(
            o.load is None or (self.collide(o, rows) and not streaming)
            for o in self.product.operands
            if o.of_rows
        )

    def collide(self, operand: Operand, rows: int) -> bool:
        """Whether ``rows`` rows have set conflicts in the first cache, or are not in order."""
        assert operand.load is not None
        if self.product.windows is None:
            (place,) = operand.load.index
            if place.coefficient(self.product.step) != 1:
                return True
        if self.unit is not None:
            # It takes whole lines, once.
            return False
        stride, step = self._apart(operand)
        if self._crowds(stride, rows):
            return True
        # Lines that are used by one row in one step, and in a later one again.
        return stride >= self.l1.line and self._crowds(step, self._inner_steps)

    def _apart(self, operand: Operand) -> tuple[int, int]:
        """Bytes between rows of an operand, and between its steps."""
        if operand not in self._strides:
            # Every tiling asks.
            row, step = (
                self.size * (elements_apart(operand, v) or 0)
                for v in (self.product.row, self.product.step)
            )
            self._strides[operand] = row, step
        return self._strides[operand]

    def _crowds(self, stride: int, count: int) -> bool:
        """Whether ``count`` lines, ``stride`` bytes apart, overfill their cache sets."""
        ways = self.l1.associativity or 8
        way = max(self.l1.size // ways, 1)
        together = gcd(stride, way)
        return together >= self.l1.line and count * together > way * ways // 2

    @property
    def _inner_steps(self) -> int:
        """Steps of the fastest loop over them, if rows are used in windows."""
        return 0 if self.product.windows is None else self.product.windows.steps[-1]

    def _fetched(self, operand: Operand) -> float:
        """Time of an element from memory: of large buffers, and of prepacked panels.

        All that is kept for a program goes through a private cache between two uses of a panel. The
        others stay there.
        """
        far = self.target.memory[-1].bandwidth
        if self.each is None or not far:
            return 0.0
        buffers = {n.buffer for n in operand.nodes if isinstance(n, Load)}
        sizes = {b: b.bytes_per_element for b in buffers}
        large = [size for b, size in sizes.items() if b.numel // self.batch * size > self.l2]
        if operand.kept:
            large = [self.size] if self.lasting > self.l2 else []
        return sum(large) * self.threads / far / self.each

    def _in_windows(self) -> float:
        """Time to load unpacked rows from the shared cache."""
        shared = next((m for m in self.target.memory if m.shared_by > 1), self.target.memory[-1])
        if self.product.windows is None or self.each is None or not shared.bandwidth:
            return 0.0
        return self.row_bytes * self.threads / shared.bandwidth / self.each

    def pieces(self, tiling: Tiling) -> int:
        """Pieces that threads do."""
        return self.batch * tiling.row_pieces * tiling.column_pieces

    def bytes(self, tiling: Tiling) -> list[int]:
        """Bytes of all threads between registers and the first cache, and from the next one.

        In the first cache stay the columns of one panel, if these fit, or the rows of one tile.
        """
        tiles = -(-self.rows // tiling.rows)
        panels = -(-self.columns // tiling.lanes)
        each = self.batch * self.steps * self.size
        panel, tile = each * tiling.lanes, each * tiling.rows
        used = tiles * panels * (panel + tile)
        fits = tiling.lanes * tiling.depth * self.size <= self.l1.size // 2
        further = panels * (tiles * tile + (panel if fits else tiles * panel))
        return [used, further]

    def seconds(self, time: float) -> float | None:
        """Seconds of ``time`` multiply-adds of a vector; None if the rate is unknown."""
        return None if self.each is None else time * self.each

    def cost(self, tiling: Tiling) -> float:
        """Time of the thread with most to do, in multiply-adds of a vector."""
        turns = -(-self.pieces(tiling) // tiling.threads)
        row_blocks = -(-self.rows // tiling.row_block)
        rows = min(self.rows, -(-row_blocks // tiling.row_pieces) * tiling.row_block)
        column_blocks = -(-self.columns // tiling.column_block)
        mine = -(-column_blocks // tiling.column_pieces)
        columns = min(self.columns, mine * tiling.column_block)
        total = self.steps * self._tiles(tiling, rows, columns)
        for operand in self.product.operands:
            if operand.of_rows:
                if tiling.pack_rows or operand.load is None:
                    # Fetches of unpacked operands overlap their many multiply-adds.
                    each = self.copies[operand] + self.fetches[operand]
                    if tiling.row_block * tiling.depth * self.size > self.l1.size:
                        # Lines of the panel come from the next cache, and go there again.
                        each = max(each, 2 * self.far_load / self.width)
                    total += each * mine * rows * self.steps
                continue
            total += self.fetches[operand] * columns * self.steps
            if tiling.pack_columns or operand.load is None:
                total += self.copies[operand] * columns * self.steps
        total += self._rows_from_others(tiling, mine) + self.stores * rows * columns
        # Stores that memory does not keep up with hide most of the arithmetic, and not the reverse.
        memory = rows * columns * self._result_memory(tiling)
        total = max(total, memory + rates.NOT_HIDDEN * total)
        return turns * total + (self.overhead if tiling.threads > 1 else 0.0)

    def _result_memory(self, tiling: Tiling) -> float:
        """Memory time of a result, and for what else is loaded and stored for each."""
        moved, footprint = self.moved
        if footprint <= self.l2 or self.each is None:
            return 0.0
        run = tiling.column_block if tiling.row_block <= tiling.rows else tiling.lanes
        if run >= self.columns and self.product.in_order:
            # Rows behind each other are one.
            run *= self.rows
        starts = 1 + RUN_START / (run * self.size)
        seconds = rates.traffic_seconds(self.target, moved * starts, footprint)
        # One thread gets its share of the bandwidth, whether others want theirs or not.
        return 0.0 if seconds is None else seconds * self.threads / self.each

    def _rows_from_others(self, tiling: Tiling, blocks: int) -> float:
        """Load unpacked rows once, or per block of columns if they exceed the second cache."""
        rows = self.row_bytes // tiling.row_pieces
        panel = tiling.column_block * self.steps * self.size
        return self.shared / tiling.row_pieces * (1 if rows + panel <= self.l2 else blocks)

    def _tiles(self, tiling: Tiling, rows: int, columns: int) -> float:
        """One step of all register tiles of a piece."""
        digits = self.digits if self.product.rows[-1] % tiling.rows else 0.0
        windows = self.product.windows
        unit = self.unit

        def tile(height: int, vectors: int) -> float:
            if unit is not None:
                return self._unit_step(unit, tiling, height, vectors)
            loads = vectors * self.vector_load + height * self.load
            far = self._far(tiling, height, vectors)
            joined = 3.0 * height * vectors / tiling.chain if tiling.chain < self.steps else 0.0
            if windows is not None:
                run = min(windows.steps[-1], tiling.chain)
                joined += (LOOP_END if run > FORESEEN else FORESEEN_END) / run
            joined += height * digits / self.steps
            # Of tiles with as many multiply-adds the one with fewer loads.
            longest = max(height * vectors, self.in_flight, loads, far)
            return longest + STEP + LOADED * loads + joined

        def panel(vectors: int) -> float:
            whole, rest = divmod(rows, tiling.rows)
            tiles = whole * tile(tiling.rows, vectors) + (tile(rest, vectors) if rest else 0.0)
            # The correction of the offset is one more row of every block.
            blocks = 0 if self.product.offset is None else -(-rows // tiling.row_block)
            return tiles + blocks * tile(1, vectors)

        whole, rest = divmod(columns, tiling.lanes)
        return whole * panel(tiling.lanes // self.width) + -(-rest // self.width) * panel(1)

    def _far(self, tiling: Tiling, height: int, vectors: int) -> float:
        """Time of a register tile's step in caches behind the first one.

        A panel of columns, and rows in windows, are used by the next tile again, if they stay. All
        panels of a block are used before, if it has one tile of rows.
        """
        lanes = vectors * self.width
        if tiling.row_block <= tiling.rows < self.rows:
            lanes = max(lanes, min(tiling.column_block, self.columns))
        panel = lanes * tiling.depth * self.size
        lines, touched = self._touched(tiling.depth, height)
        load = self.far_load if panel + touched <= self.l2 // 4 * 3 else self.shared_load
        far = vectors * load if panel > self.l1.size // 2 else 0.0
        return far + (lines * load if panel + touched > self.l1.size else 0.0)

    def _touched(self, depth: int, height: int) -> tuple[float, int]:
        """Lines of rows in windows that a step uses for a tile, and bytes that all steps do."""
        windows = self.product.windows
        if windows is None or self.unit is not None or innermost(windows.steps, depth) is None:
            return 0.0, 0
        line, each = self.l1.line, 0
        for operand in self.product.operands:
            if operand.of_rows and operand.load is not None:
                row, step = self._apart(operand)
                in_lines = -(-(height - 1) * min(row, line) // line + 1) * line
                each += min(in_lines, height * max(step, self.size))
        touched = min(depth * each, self._window_bytes(height, depth))
        return touched / depth / line, touched

    def _unit_step(self, unit: MatrixUnit, tiling: Tiling, height: int, vectors: int) -> float:
        """One step of a tile of a unit, in multiply-adds of a vector.

        Lines of operands are loaded once for all of a tile's steps: of rows as many as the unit has
        words in a row, of columns one in each step. Rows are used for all panels, one after the
        other. Sums are stored, and loaded again.
        """
        down = -(-height // unit.shape[0])
        lines = down + vectors
        used = tiling.rows * tiling.depth * self.size
        far = lines if used > self.l1.size // 2 else vectors
        busy = max(down * unit.shape[0] * vectors, unit.in_flight * unit.shape[0])
        waits = 2 * self.vector_load * height * vectors / tiling.depth
        return max(busy, lines * self.vector_load, far * self.far_load) + waits


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
    """The size of a block, at most so much and no less than half, with which most of all are full.

    Threads get whole blocks, so what the last one lacks is time that a thread waits.
    """
    return min(range(-(-most // 2), most + 1), key=lambda size: (-(-count // size) * size, -size))
