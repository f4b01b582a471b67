"""Plans of contractions by matrix units that warps drive."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import gcd, lcm, prod
from typing import Any, ClassVar

from polyblocks.affine.access import accesses, stride_along
from polyblocks.affine.analysis.contractions import Operand
from polyblocks.affine.contraction.products.product import Product
from polyblocks.affine.element import I1, dtype_of
from polyblocks.affine.expr import Expr
from polyblocks.affine.gpu.plans.fragments import (
    ACCESS_BYTES,
    PHASE_BYTES,
    TILE,
    outers_of,
)
from polyblocks.affine.gpu.plans.lanes import ADDRESSES
from polyblocks.affine.gpu.plans.numbers import Numbers
from polyblocks.affine.gpu.plans.read_schedule import AHEAD, ReadSchedule
from polyblocks.affine.gpu.plans.sizes import TilePlan
from polyblocks.affine.gpu.plans.unit_access import UnitAccess
from polyblocks.affine.model import AffineAccess, Store
from polyblocks.affine.plan.keys import PlanKind
from polyblocks.affine.plan.tiles import Tiles
from polyblocks.affine.subnests import is_affine_code
from polyblocks.affine.swizzles import Swizzle, doubling, no_bits
from polyblocks.target import (
    UNIT_BITS,
    AsynchronousCopies,
    BoundedLoads,
    MatrixUnit,
    TileLoads,
)

#: Columns that a lane has at once where sums are exchanged.
COLUMNS_AT_ONCE = 8
#: Calls of a unit for a stage, at most, where a tile has whole windows; and tiles that have them
#: together.
CALLS_OF_WINDOWS = 9
#: Registers that the addresses of operands take where tiles are read by columns.
_ADDRESSES = 4
#: Instructions that find a loop's variable for a step, where it depends on the thread.
_DECODED = 40
#: Registers for what divisions leave unfinished.
_DIVIDED = 12
#: Registers for what copies and loops need, beside what every kernel has.
_OTHER = 16
#: Registers of operands that are read in turn, some products ahead of theirs.
_AHEAD = 16
#: Registers that loads and places of tiles take that are written out one after the other.
_SEVERAL_TILES = 24


def _stores_whole_pieces(plan: UnitPlan) -> bool:
    """Whether neighbouring columns of a result are neighbours in memory, and all there."""
    parts = plan.sizes.parts
    nodes = [*parts.before, *parts.after]
    if parts.columns[-1].extent % COLUMNS_AT_ONCE or not is_affine_code(nodes):
        return False
    if any(n.where for n in accesses(nodes)):
        return False
    stores = [n for n in nodes if isinstance(n, Store)]
    return any(plan.column_stride(n) == 1 and dtype_of(n.value.type) != I1 for n in stores)


@dataclass(frozen=True, eq=False)
class UnitPlan(TilePlan):
    """How the warps of blocks compute tiles of a contraction by a matrix unit.

    Attributes:
        sizes: of the tiles; ``of_thread`` and ``across`` are those of the sums: of each lane, and
            the lanes that have different ones.
        access: how the unit finds the operands of the product that it computes.
        tiles: of a warp and of a block, whole units.
        stages: tiles of each operand that are in shared memory.
        warp: threads of a warp.
        copies: how they get there past the registers; None if they cannot.
        bounded: loads that find zeros beyond the end of a buffer; None if there are none.
        loads: how tiles of both operands are read; None if each lane reads its own chunks.
        fence: see :class:`polyblocks.target.Multiprocessor`.
        cluster: blocks along rows, and along columns, that share what they read.
    """

    kind: ClassVar[PlanKind] = PlanKind.UNIT
    #: Stages that are neither used nor filled; how often warps wait for each other for a tile, one
    #: behind the other; whether operands are read once for all units of a warp; and whether blocks
    #: can compute tile after tile.
    kept: ClassVar[int] = 0
    can_persist: ClassVar[bool] = False
    exchanges: ClassVar[int] = 2
    shares_reads: ClassVar[bool] = True

    access: UnitAccess
    tiles: Tiles
    stages: int
    warp: int
    copies: AsynchronousCopies | None = None
    bounded: BoundedLoads | None = None
    loads: TileLoads | None = None
    fence: str = ""
    cluster: tuple[int, int] = (1, 1)

    @cached_property
    def warps(self) -> tuple[int, int]:
        """Warps of a block along rows and along columns."""
        (rows, columns), (height, width) = self.tiles.block_tile, self.tiles.register_tile
        return rows // height, columns // width

    @cached_property
    def of_warp(self) -> tuple[int, int]:
        """Units of a warp along rows and along columns."""
        (height, width), (m, n, _) = self.tiles.register_tile, self.unit.shape
        return height // m, width // n

    @cached_property
    def calls(self) -> int:
        """Calls of a unit one after the other that a stage of the operands is for."""
        return self.tiles.k_block // self.unit.shape[2]

    @property
    def product(self) -> Product:
        """The product that is computed."""
        return self.access.product

    @property
    def unit(self) -> MatrixUnit:
        """The matrix unit."""
        return self.access.unit

    @property
    def element_bytes(self) -> int:
        """Of an element of an operand in shared memory."""
        return self.product.element.nbytes

    @property
    def piece(self) -> int:
        """Elements that a thread copies at once."""
        return ACCESS_BYTES // self.element_bytes

    @property
    def beside(self) -> int:
        """Pieces of a row (or column) that neighbouring threads copy, and that swizzles mix.

        A line of the caches, or the part of one that rows are a multiple of.
        """
        return gcd(PHASE_BYTES // ACCESS_BYTES, self.sizes.depth // self.piece)

    def window(self, operand: Operand) -> int:
        """Steps of a window, if every thread knows the places in it of the steps that it loads.

        It loads them one by one: all steps of a row (or column), whose places come again after some
        tiles; or a part of them, of tiles that are made of windows. 1: it does not know them.
        """
        window = self.access.window
        length = self.sizes.tile[operand.side]
        if (
            window == 1
            or self.along(operand)
            or self.sizes.counts[2] % lcm(window, self.sizes.depth)
        ):
            return 1
        if self.has_rows_of_threads(operand):
            few = lcm(window, self.sizes.depth) // self.sizes.depth <= CALLS_OF_WINDOWS
            return window if few else 1
        if self.threads % length:
            return 1
        groups = self.threads // length
        return window if self.sizes.depth % (groups * lcm(window, self.piece)) == 0 else 1

    def has_rows_of_threads(self, operand: Operand) -> bool:
        """Whether there is a row (or column) of a tile for each thread, or several."""
        return self.sizes.tile[operand.side] % self.threads == 0

    @property
    def period(self) -> int:
        """Tiles after which the steps have the same places in windows again, if that matters."""
        window = max(self.window(o) for o in self.product.operands)
        return lcm(window, self.sizes.depth) // self.sizes.depth if window > 1 else 1

    def shape(self, operand: Operand) -> tuple[int, ...]:
        """Stages, rows or columns, and steps; of an operand that is read by columns transposed.

        Pieces are swizzled, see :meth:`layout`.
        """
        length = self.sizes.tile[operand.side]
        if self.is_transposed(operand):
            return self.stages, self.sizes.depth, length
        return self.stages, length, self.sizes.depth

    def index(self, operand: Operand, stage: Expr, outer: Expr, step: Expr) -> tuple[Expr, ...]:
        """Where a step of a row (or column) of an operand's tile is in a stage."""
        return (stage, step, outer) if self.is_transposed(operand) else (stage, outer, step)

    @property
    def mixed_steps(self) -> int:
        """Steps of a row whose pieces change places: others are a constant away."""
        return self.beside * self.piece

    def layout(self, operand: Operand) -> tuple[Swizzle, ...]:
        """Which pieces of a tile change places, so that accesses meet in no bank.

        A *piece* is what a thread copies at once, and the memory serves a *line* of 128 bytes at a
        time. Neighbouring threads copy the pieces of one line of memory, which becomes one line of
        shared memory: that is what a chip's asynchronous copies keep together on their way through
        its caches. Inside of the line pieces change places with each other, depending on the row,
        such that a warp's reads of different rows, a few steps of each, fill lines as well, and so
        do stores of a piece for each row.
        """
        piece, of_row, together = self.piece, self.beside, self.together
        if self.is_transposed(operand):
            # Tiles that are read by columns have the same piece of eight steps.
            return (Swizzle(1, 2, doubling(piece, TILE)),)
        rows = PHASE_BYTES // ACCESS_BYTES // of_row
        found = []
        if of_row > 1:
            # A warp's part of a row stays together; where whole pieces are stored row by row, those
            # of rows with the same place are swizzled inside of it.
            parts = doubling(together * piece, of_row // together)
            masks = (*no_bits(rows), *parts, *doubling(piece, together))
            found.append(Swizzle(1, 2, masks))
        if self.along(operand) == "outer" and rows > 1:
            # Steps are stored two at a time, a piece of rows by a thread. Threads store rows that
            # are a piece apart at once, which have the same place in a line: the rows of a line
            # change places with each other.
            found.append(Swizzle(1, 1, (*no_bits(piece), *doubling(1, rows))))
        return tuple(found)

    @property
    def together(self) -> int:
        """Pieces of a row (or column) that the lanes of a warp read together."""
        if self.loads is not None:
            return 1
        steps = self.access.lane_steps
        chunk = steps.chunk * self.element_bytes
        low = [bit for bit in steps.bits if chunk << bit < PHASE_BYTES]
        return max(1, (chunk << len(low)) // ACCESS_BYTES)

    def along(self, operand: Operand) -> str:
        """See :class:`polyblocks.affine.gpu.plans.unit_access.UnitAccess`."""
        return self.access.along[operand.side]

    def is_transposed(self, operand: Operand) -> bool:
        """Whether an operand is stored as it lies in memory, step by step, and read by columns."""
        length = self.sizes.tile[operand.side]
        return (
            self.loads is not None
            and self.along(operand) == "outer"
            and self.element_bytes == 2
            # As many pieces as the swizzle tells apart.
            and length % (TILE * self.piece) == 0
        )

    def is_asynchronous(self, operand: Operand) -> bool:
        """Whether an operand is copied past the registers."""
        if self.copies is None or self.copies.bytes != ACCESS_BYTES:
            return False
        side = operand.side
        by_rows = self.along(operand) == "steps" or self.is_transposed(operand)
        return by_rows and self.access.aligned[side] and not operand.on_the_way

    @property
    def copies_through_registers(self) -> bool:
        """Whether no operand is copied past the registers."""
        return not any(self.is_asynchronous(o) for o in self.product.operands)

    def shared_bytes(self) -> int:
        """Bytes of the operands' tiles."""
        return sum(prod(self.shape(o)) for o in self.product.operands) * self.element_bytes

    def pieces(self, operand: Operand) -> int:
        """Vector chunks of an operand's tile; a thread copies one at a time."""
        length, chunk = self.sizes.tile[operand.side], self.piece
        if self.along(operand) == "step":
            return self.sizes.depth * length
        if self.along(operand) == "outer" and not self.is_transposed(operand):
            return self.sizes.depth // 2 * (length // chunk)
        return self.sizes.depth // chunk * length

    @property
    def has_idle_copiers(self) -> bool:
        """Whether some threads have nothing to copy in a round, where copies go through registers.

        Copies are then branches, past which products are not moved: loads are waited for.
        """
        return any(
            self.pieces(o) % self.threads
            for o in self.product.operands
            if not self.is_asynchronous(o)
        )

    def copied_words(self, operand: Operand) -> int:
        """Registers of what a thread copies at once of an operand that comes through them."""
        pairs = self.along(operand) == "outer" and not self.is_transposed(operand)
        words = 4 * operand.load.buffer.bytes_per_element // self.element_bytes
        return -(-self.pieces(operand) // self.threads) * words * (2 if pairs else 1)

    def of_places(self, operand: Operand) -> int:
        """Registers of a place in memory that is not a constant away from that of other rows.

        An address, and a number for each dimension that a condition is about.
        """
        side = operand.side
        order = (self.sizes.parts.rows, self.sizes.parts.columns)[side]
        if len(order) == 1 and self.sizes.counts[side] % self.sizes.tile[side] == 0:
            return 0
        return 2 + self.access.conditions[side]

    def copying(self, operand: Operand) -> int:
        """Instructions of a thread, about, that copy a tile of an operand.

        A place is an addition, and a condition a sum and a comparison for each of its dimensions;
        what is loaded one by one is put together.
        """
        rounds = -(-self.pieces(operand) // self.threads)
        side = operand.side
        place = self.of_places(operand) + 3 * self.access.conditions[side]
        if self.is_asynchronous(operand):
            return rounds * (1 + place)
        if self.along(operand):
            return rounds * (3 + place)
        if (window := self.window(operand)) > 1:
            # Loads at constant distances of each other, under conditions that do not change.
            return rounds * (1 + self.piece + self.piece // 2) + min(window, self.sizes.depth)
        # The loops' variables of each step are divisions, of each thread if it has its own steps.
        same = self.access.linear[side] or self.has_rows_of_threads(operand)
        inside = 0 if same else _DECODED * (len(self.product.steps) - 1)
        return rounds * (1 + self.piece * (3 + place + inside))

    @property
    def reading(self) -> int:
        """Instructions of a thread that read the operands of a tile, and that multiply them."""
        assert self.unit.fragments is not None
        first, second, _ = self.unit.fragments
        rows, columns = self.of_warp
        if self.loads is not None:
            words = [f.elements * self.element_bytes // 4 for f in (first, second)]
            return self.calls * ((rows * words[0] + columns * words[1]) // 4 + rows * columns)
        lines = rows * len(outers_of(first)) + columns * len(outers_of(second))
        return self.calls * (lines * self.access.lane_steps.chunks + rows * columns)

    def column_stride(self, node: AffineAccess) -> int | None:
        """Elements from an access to that of the next column."""
        return stride_along(node.buffer, node.index, self.sizes.parts.columns[-1])

    @property
    def largest_operand(self) -> Operand:
        """The operand with the most shared memory, where sums are exchanged."""
        return max(reversed(self.product.operands), key=lambda o: prod(self.shape(o)))

    @property
    def exchanged_bytes(self) -> int:
        """Bytes of the sums of a row of a warp's units."""
        m, n, _ = self.unit.shape
        return 4 * m * self.of_warp[1] * n

    @property
    def exchanges_sums(self) -> bool:
        """Whether lanes exchange sums through shared memory, to store neighbouring columns.

        They are stored in whole pieces then, and there is room for the exchange.
        """
        # Lanes exchange numbers of 32 bits.
        if self._words_of_sum > 1 or not _stores_whole_pieces(self):
            return False
        room = prod(self.shape(self.largest_operand)) * self.element_bytes
        columns = self.of_warp[1] * self.unit.shape[1]
        # Swizzles are for powers of two.
        fits = columns % COLUMNS_AT_ONCE == 0 and columns & (columns - 1) == 0
        return fits and room >= self.exchanged_bytes * prod(self.warps)

    @property
    def reads(self) -> ReadSchedule:
        """When operands are read, where copies go through registers."""
        return ReadSchedule.of(self.of_warp, self.calls, self.loads is not None)

    def read_early(self, side: int) -> int:
        """Units along rows (or columns) whose operands are read during the call before.

        See :class:`polyblocks.affine.gpu.plans.read_schedule.ReadSchedule`.
        """
        units = self.of_warp[side]
        if self.loads is not None:
            return units
        each = 1 if side else self.of_warp[1]
        return min(units, -(-AHEAD // each))

    @property
    def read_ahead(self) -> int:
        """Operands of columns that are in registers at once, where they are read in turn."""
        assert self.unit.fragments is not None
        words = self.unit.fragments[1].elements * self.element_bytes // 4
        return max(2, _AHEAD // words)

    @property
    def _words_of_sum(self) -> int:
        """32-bit registers of an element of the result."""
        return UNIT_BITS[self.unit.accumulator] // 32

    @property
    def words(self) -> int:
        """32-bit registers: sums, operands of this call and the next one, copies, and addresses."""
        r, c = self.sizes.of_thread
        assert self.unit.fragments is not None
        first, second, sums = self.unit.fragments
        through = self.copies_through_registers
        held = 0
        for side, fragment in enumerate((first, second)):
            units = self.of_warp[side]
            # Registers that are tuples of several have to be put together.
            times = 3 if fragment.register_bits > 32 else 2
            tuples = units + self.read_early(side) if through else times * units
            held += tuples * fragment.elements * self.element_bytes // 4
        copied = 0
        for operand in self.product.operands:
            # Swizzles make addresses differ by more than a constant: those of calls, or of columns.
            mixed = max(1, self.beside * self.piece // self.unit.shape[2])
            copied += _ADDRESSES if self.is_transposed(operand) else mixed
            rounds = -(-self.pieces(operand) // self.threads)
            if (window := self.window(operand)) > 1:
                # Each element and each condition has a register; all have one place.
                copied += rounds * self.piece + window + self.of_places(operand)
                continue
            copied += rounds * self.of_places(operand)
            if self.is_asynchronous(operand):
                continue
            pairs = self.along(operand) == "outer" and not self.is_transposed(operand)
            # Rounded when they have come.
            words = 4 * operand.load.buffer.bytes_per_element // self.element_bytes
            if not self.along(operand):
                # Steps that are loaded one by one, for several rows each, have their own places,
                # and each takes divisions to find.
                copied += self.sizes.depth + _DIVIDED
            single = self.along(operand) == "step"
            copied += rounds * (1 if single else 2 * words if pairs else words)
        # Where the sums of an iteration are others than those of the one before, tuples leave gaps.
        gaps = r * c // 4 if sums.register_width > 1 and not through else 0
        several = _SEVERAL_TILES if self.period > 1 else 0
        return r * c * self._words_of_sum + gaps + held + copied + several + _OTHER

    def registers(self) -> int:
        """32-bit registers of a thread, about."""
        return self.words + ADDRESSES

    def schedule(self, numbers: Numbers) -> dict[str, Any]:
        """The plan as data."""
        sizes = {**self.tiles.schedule(), "stages": self.stages, "unit": self.unit.name}
        return {**sizes, **self.derived()}

    def derived(self) -> dict[str, Any]:
        """Keys that follow from these: how operands are staged, and results."""
        operands, reads = self.product.operands, self.reads
        waits = {}
        if self.copies_through_registers:
            waits = {"stored": reads.stored, "barrier": reads.barrier}
        staging: dict[str, Any] = {
            "asynchronous": [self.is_asynchronous(o) for o in operands],
            "shared": [list(self.shape(o)) for o in operands],
            **waits,
        }
        return {"staged": self.exchanges_sums, "staging": staging}

    def decision(self) -> dict[str, Any]:
        """Its numbers for reports."""
        unit = {"unit": self.unit.name, "operands": self.unit.operands, "row_tiles": self.order[0]}
        return {**self.sizes.decision(), **unit}
