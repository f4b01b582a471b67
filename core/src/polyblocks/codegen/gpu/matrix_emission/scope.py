"""Values that all parts of a unit's kernel share: the lane's place, and the program's buffers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

from polyblocks.affine.analysis.contractions import Operand
from polyblocks.affine.gpu.plans.fragments import outers_of, steps_of
from polyblocks.affine.gpu.plans.units import UnitPlan
from polyblocks.affine.model import Buffer
from polyblocks.codegen.gpu.accesses.bounded import BoundedBuffer
from polyblocks.codegen.gpu.emission.combine import barrier
from polyblocks.codegen.gpu.emission.tiles import TileEmitter
from polyblocks.mlir import ir


class UnitScope:
    """Values that a kernel computes once.

    Args:
        tile: the sums of the lane.
        plan: how tiles are computed.
        tiles: shared memory of both operands.
        results: shared memory of results; None without.
        barriers: shared memory of barriers; None if there are none.

    Attributes:
        code: of the kernel.
        fragments: of the unit's operands and of its sums; None if it reads shared memory.
        sums: of the unit's sums.
        lane: the thread's number in its warp.
        warp: the number of the thread's warp, the same value in all of these; where it is needed.
        places: rows and columns of the lane's sums, as numbers in the block's tile.
        corner: where the warp's tile begins, along rows and along columns of the block's.
        meet: lets the threads that have sums wait for each other.
    """

    def __init__(
        self,
        tile: TileEmitter,
        plan: UnitPlan,
        tiles: dict[Operand, Any],
        results: Any = None,
        barriers: Any = None,
    ) -> None:
        assert plan.unit.sums is not None
        self.tile, self.code, self.plan, self.tiles = tile, tile.code, plan, tiles
        self.fragments, self.sums = plan.unit.fragments, plan.unit.sums
        self.results, self.barriers = results, barriers
        self.warp: Any = None
        self.places: tuple[list[Any], list[Any]] = ([], [])
        self.meet: Callable[[], None] = partial(barrier, tile.code)
        self.lane: Any = None
        self.corner: list[Any] = []
        self._aligned_memrefs: dict[Buffer, Any] = {}
        self._flat_memrefs: dict[Buffer, Any] = {}
        self._bounded: dict[Operand, BoundedBuffer] = {}

    @property
    def threads_of_warp(self) -> int:
        """Threads of one warp, where several call the unit."""
        return self.plan.warp // self.plan.unit.warps

    def place(self, thread: Any) -> tuple[list[Any], list[Any]]:
        """The rows and columns of the lane's sums, as numbers in the block's tile."""
        code, plan = self.code, self.plan
        self.lane, self.corner = code.remainder(thread, plan.warp), []
        warp = code.quotient(thread, plan.warp)
        if self.warp is not None:
            # The same in all of its threads, and known to be.
            warp = code.value("arith.index_cast", code.index, self.warp)
            warp = code.quotient(warp, plan.unit.warps)
        numbers = (code.quotient(warp, plan.warps[1]), code.remainder(warp, plan.warps[1]))
        sums = self.sums
        places = self.places = ([], [])
        for side, own in enumerate((outers_of(sums), steps_of(sums))):
            size = plan.unit.shape[side]
            corner = code.times(numbers[side], plan.of_warp[side] * size)
            self.corner.append(corner)
            first = code.add(corner, self.of_lane([adds[side] for adds in sums.lanes]))
            for unit in range(plan.of_warp[side]):
                for offset in own:
                    at = unit * size + offset
                    places[side].append(code.add(first, code.integer(at)) if at else first)
        return places

    def aligned(self, buffer: Buffer, nbytes: int) -> Any:
        """The memref of a buffer that has to begin at a multiple of ``nbytes`` bytes."""
        if buffer not in self._aligned_memrefs:
            memref = self.tile.nodes.memrefs[buffer]
            with self.code.behind(memref):
                self._aligned_memrefs[buffer] = self.code.value(
                    "memref.assume_alignment",
                    memref.type,
                    memref,
                    alignment=ir.IntegerAttr.get(self.code.i32, nbytes),
                )
        return self._aligned_memrefs[buffer]

    def bounded(self, operand: Operand) -> BoundedBuffer:
        """The buffer of an operand for the chip's bounded loads."""
        if operand not in self._bounded:
            plan, buffer = self.plan, operand.load.buffer
            assert plan.bounded is not None
            # All threads have the same steps, each of rows of its own.
            apart = plan.window(operand) > 1 and plan.has_rows_of_threads(operand)
            self._bounded[operand] = BoundedBuffer(
                self.code, plan.bounded, buffer, self.tile.nodes.memrefs[buffer], apart
            )
        return self._bounded[operand]

    def flat(self, buffer: Buffer) -> Any:
        """All elements that a buffer's strides reach, as a memref of one dimension."""
        memref = self.tile.nodes.memrefs[buffer]
        steps, offset = memref.type.get_strides_and_offset()
        if steps == [1]:
            return memref
        if buffer not in self._flat_memrefs:
            pairs = zip(memref.type.shape, steps, strict=True)
            span = 1 + sum((extent - 1) * stride for extent, stride in pairs)
            layout = ir.StridedLayoutAttr.get(offset, [1])
            type_ = ir.MemRefType.get(
                [span], memref.type.element_type, layout, memref.type.memory_space
            )
            with self.code.behind(memref):
                self._flat_memrefs[buffer] = self.code.value(
                    "memref.reinterpret_cast",
                    type_,
                    memref,
                    operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, 0, 0, 0]),
                    static_offsets=ir.DenseI64ArrayAttr.get([offset]),
                    static_sizes=ir.DenseI64ArrayAttr.get([span]),
                    static_strides=ir.DenseI64ArrayAttr.get([1]),
                )
        return self._flat_memrefs[buffer]

    def of_lane(self, adds: list[int]) -> Any:
        """The sum of ``adds`` over the set bits of the lane's number; runs of bits are merged."""
        code = self.code
        total = None
        bit = 0
        while bit < len(adds):
            if not adds[bit]:
                bit += 1
                continue
            end = bit + 1
            while end < len(adds) and adds[end] == adds[bit] << (end - bit):
                end += 1
            field = code.remainder(code.quotient(self.lane, 1 << bit), 1 << (end - bit))
            term = code.times(field, adds[bit])
            total = term if total is None else code.add(total, term)
            bit = end
        return code.integer(0) if total is None else total

    def in_stage(self, memref: Any, stage: Any, place: list[Any], plus: int) -> Any:
        """The address of a place in a stage, plus ``plus`` elements.

        Terms that do not depend on the stage come first: they are computed once.
        """
        code, size = self.code, self.plan.element_bytes
        at = code.address(memref, code.place(memref, [code.integer(0), *place]), size)
        at = code.add(at, code.times(stage, prod(memref.type.shape[1:]) * size))
        return code.plus(at, plus * size)
