"""Plans of contractions by matrix units that read shared memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import gcd, prod
from typing import Any, ClassVar

from polyblocks.affine.analysis.contractions import Operand
from polyblocks.affine.expr import Expr
from polyblocks.affine.gpu.plans.boxed_arrays import RESULT_BYTES, BoxedArray
from polyblocks.affine.gpu.plans.fragments import ACCESS_BYTES
from polyblocks.affine.gpu.plans.numbers import Numbers
from polyblocks.affine.gpu.plans.units import UnitPlan
from polyblocks.affine.gpu.plans.windowed_arrays import WindowedArray
from polyblocks.affine.swizzles import Swizzle, doubling
from polyblocks.target import BulkCopies, GroupUnit

#: Rows of a tile after which the swizzle is the same again.
ROWS = 8
#: Registers that copies, descriptors of tiles and loops need.
_OTHER = 40
#: Registers of a thread that are given away or taken are a multiple of this.
_GIVEN = 8
#: Instructions that call a unit: the descriptors of both operands, and the call.
_OF_CALL = 5
#: Instructions of a tile's fences, groups and waits.
_OF_TILE = 10
#: Rows of tiles at a time, at most: those of a group of blocks that share what they read. From 2 to
#: 64 rows products of 4096 and 8192 took the same time on an H200.
_TOGETHER = 16
#: Groups of products that go on while the next tile's begin.
IN_FLIGHT = 1


def registers_at_first(pool: int, threads: int) -> int:
    """Registers of a thread with which a block begins that has all of a multiprocessor."""
    return min(pool // threads, 255) // _GIVEN * _GIVEN


def registers_given(bulk: BulkCopies, first: int, groups: int) -> tuple[int, int] | None:
    """Registers of a thread that copies, and of one of some groups that multiply.

    None: as they begin, with ``first`` each.
    """
    most = min((first * (groups + 1) - bulk.least) // groups // _GIVEN * _GIVEN, bulk.most)
    return (bulk.least, most) if most > first else None


@dataclass(frozen=True, eq=False)
class GroupUnitPlan(UnitPlan):
    """How groups of warps compute tiles of a contraction by a unit that reads shared memory.

    ``warp`` is the threads of such a group. Operands are copied past the registers. A tile's steps
    are those of a line of the unit; products of a tile go on while the copies that follow it, and
    the products of the next one, begin.

    With ``bulk`` copies warps have roles: a thread of one more group starts copies, and the others
    multiply. Blocks of a cluster copy a part each of a tile that all of them read.

    Attributes:
        bulk: how boxes are copied; None if threads copy pieces.
        arrays: the operands as they see them, rows first.
        pool: registers of a multiprocessor, which are given to the warps of one block.
        result: what results leave shared memory to in boxes; None if lanes store them.
        units: multiprocessors of the chip; 0 if unknown.
        shared: bytes of a multiprocessor's shared memory.
    """

    exchanges: ClassVar[int] = 0
    shares_reads: ClassVar[bool] = False

    bulk: BulkCopies | None = None
    arrays: tuple[BoxedArray | WindowedArray, ...] = ()
    pool: int = 0
    result: BoxedArray | None = None
    units: int = 0
    shared: int = 0

    @property
    def persistent(self) -> bool:
        """Whether blocks compute tile after tile, so that copies go on while results are stored.

        There is one block for each multiprocessor then, which has room for no other.
        """
        return self.can_persist and 0 < self.units < self.sizes.blocks

    @property
    def can_persist(self) -> bool:  # type: ignore[override]
        """Whether they would, if there were more tiles than multiprocessors."""
        return self.result is not None and 2 * self.shared_bytes() > self.shared

    @property
    def blocks(self) -> int:
        """Blocks of the grid."""
        return self.units if self.persistent else self.sizes.blocks

    @property
    def rows_together(self) -> int:
        """Rows of tiles that blocks compute at about the same time, and read together."""
        together = self.persistent or self.cluster[0] > 1
        return gcd(self.sizes.grid[0], _TOGETHER) if together else 1

    def sharers(self, operand: Operand) -> int:
        """Blocks that read the same tiles of an operand together."""
        return self.cluster[1 - operand.side]

    @property
    def cluster_blocks(self) -> int:
        """Blocks of a cluster."""
        return prod(self.cluster)

    @property
    def has_clusters(self) -> bool:
        """Whether there are whole clusters, and parts of tiles are whole boxes."""
        size = self.cluster_blocks
        if size == 1:
            return True
        if self.bulk is None or size > self.bulk.cluster or min(self.cluster) > 1:
            return False
        pairs = (*zip(self.sizes.grid, self.cluster, strict=True), (self.units, size))
        whole = all(count % blocks == 0 for count, blocks in pairs)
        parts = all(self._lines(o) % (ROWS * self.sharers(o)) == 0 for o in self.product.operands)
        return whole and parts and _TOGETHER % size == 0

    @property
    def order(self) -> tuple[int, int]:
        """Rows, and columns, of tiles that follow each other in the order of blocks."""
        return self.rows_together, self.cluster[1]

    def _lines(self, operand: Operand) -> int:
        """Lines of a tile, or :data:`ROWS` for each panel, that blocks can copy parts of."""
        length = self.sizes.tile[operand.side]
        return length // self.line * ROWS if self.is_transposed(operand) else length

    @property
    def kept(self) -> int:  # type: ignore[override]
        """Stages that are neither used nor filled: none where a thread waits for free ones."""
        return 0 if self.bulk is not None else IN_FLIGHT

    @property
    def consumers(self) -> int:
        """Threads that multiply."""
        return self.sizes.threads

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.consumers + (self.warp if self.bulk is not None else 0)

    @property
    def given(self) -> tuple[int, int] | None:
        """Registers of a thread that copies, and of one that multiplies; None: as they begin."""
        if self.bulk is None or super().registers() <= self.begins:
            return None
        return registers_given(self.bulk, self.begins, self.consumers // self.warp)

    @property
    def begins(self) -> int:
        """Registers of a thread with which a block begins that has all of them."""
        return registers_at_first(self.pool, self.threads)

    def box(self, operand: Operand) -> tuple[int, ...]:
        """Extents of what is copied at once, innermost dimension first; of batches it is one.

        Of windows the rows are of one dimension, whatever pixels these are at.
        """
        array, lines = self.arrays[operand.side], self.sizes.depth
        if not self.is_transposed(operand):
            lines = self.sizes.tile[operand.side] // self.sharers(operand)
        return (self.line, lines, *[1] * (len(array.extents) - 2))

    def boxes(self, operand: Operand) -> int:
        """Boxes of a tile that a block copies: panels."""
        if not self.is_transposed(operand):
            return 1
        return self.sizes.tile[operand.side] // self.line // self.sharers(operand)

    @property
    def tile_bytes(self) -> int:
        """Bytes of the boxes of a tile of both operands."""
        return sum(prod(self.shape(o)[1:]) for o in self.product.operands) * self.element_bytes

    @property
    def barriers(self) -> int:
        """One for each stage that is filled, or free, and one where those meet that multiply."""
        return 0 if self.bulk is None else 2 * self.stages + 1

    @cached_property
    def _unit(self) -> GroupUnit:
        assert isinstance(self.unit, GroupUnit)
        return self.unit

    @property
    def line(self) -> int:
        """Elements of a line of the unit."""
        return self._unit.line // self.element_bytes

    def is_transposed(self, operand: Operand) -> bool:
        """Whether a line has rows (or columns) of one step, in panels."""
        return self.along(operand) == "outer"

    def panels(self, operand: Operand) -> int:
        """Lines of a row (or column), or of a step, which lie in panels behind each other."""
        sizes = self.sizes
        wide = sizes.tile[operand.side] if self.is_transposed(operand) else sizes.depth
        return wide // self.line

    def lines(self, operand: Operand) -> int:
        """Lines of a panel."""
        sizes = self.sizes
        return sizes.depth if self.is_transposed(operand) else sizes.tile[operand.side]

    def shape(self, operand: Operand) -> tuple[int, ...]:
        """Stages; rows, or steps of all panels; and elements of a line."""
        return self.stages, self.panels(operand) * self.lines(operand), self.line

    def index(self, operand: Operand, stage: Expr, outer: Expr, step: Expr) -> tuple[Expr, ...]:
        if not self.is_transposed(operand):
            return stage, outer, step
        panel, column = outer // self.line, outer % self.line
        return stage, panel * self.sizes.depth + step, column

    @property
    def alignment(self) -> int:
        """Of tiles in shared memory, in bytes: swizzles are of addresses."""
        return ROWS * self._unit.line

    def panel_bytes(self, operand: Operand) -> int:
        """The distance of panels; of groups of lines, if the operand is not in panels."""
        return (self.sizes.depth if self.is_transposed(operand) else ROWS) * self._unit.line

    def layout(self, operand: Operand) -> tuple[Swizzle, ...]:
        """As the unit reads lines."""
        del operand
        return (Swizzle(1, 2, doubling(self.piece, self._unit.line // ACCESS_BYTES)),)

    @property
    def result_shape(self) -> tuple[int, int, int]:
        """Of results in shared memory: panels, rows, and columns of a line."""
        rows, columns, _ = self.sizes.tile
        line = self._unit.line // RESULT_BYTES
        return columns // line, rows, line

    @property
    def result_layout(self) -> tuple[Swizzle, ...]:
        """As boxes are copied."""
        pieces = self._unit.line // ACCESS_BYTES
        return (Swizzle(1, 2, doubling(ACCESS_BYTES // RESULT_BYTES, pieces)),)

    @property
    def result_box(self) -> tuple[int, ...]:
        """Extents of what is stored at once: the rows of a group of warps, columns of a line."""
        assert self.result is not None
        rows = self.of_warp[0] * self.unit.shape[0]
        return (self.result_shape[2], rows, *[1] * (len(self.result.extents) - 2))

    @property
    def exchanges_sums(self) -> bool:
        """As of any unit, where results do not leave in boxes."""
        return self.result is None and super().exchanges_sums

    def schedule(self, numbers: Numbers) -> dict[str, Any]:
        """As of any unit, and the cluster."""
        cluster = {"cluster": list(self.cluster)} if self.cluster_blocks > 1 else {}
        return {**super().schedule(numbers), **cluster}

    def derived(self) -> dict[str, Any]:
        """As of any unit, and the results in shared memory."""
        found = super().derived()
        if self.result is not None:
            found["staged"] = True
            found["staging"]["results"] = list(self.result_shape)
            found["staging"]["persistent"] = self.persistent
        return found

    def shared_bytes(self) -> int:
        """Bytes of tiles and results, and of barriers at the alignment of tiles."""
        bytes_ = super().shared_bytes()
        if self.result is not None:
            bytes_ += prod(self.result_shape) * RESULT_BYTES
        return bytes_ + self.alignment if self.barriers else bytes_

    def copying(self, operand: Operand) -> int:
        """Instructions of a thread that multiplies; another one starts bulk copies."""
        return 0 if self.bulk is not None else super().copying(operand)

    @property
    def ahead(self) -> int:
        """Tiles whose copies are begun before a tile is used.

        The place of one is filled again when every group of warps has used the tile after it.
        """
        return self.stages - self.kept - 1

    @property
    def is_possible(self) -> bool:
        """Whether tiles are those that the unit reads, and there is a stage to fill."""
        operands = self.product.operands
        panels = [o for o in operands if self.is_transposed(o)]
        whole = all(self.unit.shape[o.side] % self.line == 0 for o in panels)
        copied = all(self.is_asynchronous(o) for o in operands)
        lines = self.sizes.depth == self.line and self.has_clusters
        return whole and copied and lines and self.ahead > 0

    @property
    def reading(self) -> int:
        """Instructions of a thread that begin the products of a tile."""
        rows, columns = self.of_warp
        return _OF_TILE + self.calls * rows * columns * _OF_CALL

    @property
    def words(self) -> int:
        """32-bit registers: sums, copies, and addresses."""
        rows, columns = self.sizes.of_thread
        if self.bulk is not None:
            return rows * columns + _OTHER
        copied = 0
        for operand in self.product.operands:
            rounds = -(-self.pieces(operand) // self.threads)
            copied += 4 + rounds * self.of_places(operand)
        return rows * columns + copied + _OTHER

    def registers(self) -> int:
        """32-bit registers of a thread, about; at the beginning, if they are given away."""
        given = self.given
        return super().registers() if given is None or self.words > given[1] else self.begins
