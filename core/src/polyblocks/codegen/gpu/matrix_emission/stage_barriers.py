"""Barriers of the stages of tiles: those that are filled, and those that are free."""

from __future__ import annotations

from typing import Any

from polyblocks.affine.gpu.plans.group_units import GroupUnitPlan
from polyblocks.codegen.gpu.accesses.pipeline import SHARED
from polyblocks.codegen.gpu.emission.code import Code
from polyblocks.codegen.gpu.emission.combine import barrier
from polyblocks.mlir import ir

#: Bytes of a barrier.
_BYTES = 8


class StageBarriers:
    """Calls of a chip's functions of barriers at the current insertion point.

    Args:
        code: of the kernel.
        plan: with bulk copies.
        memory: the memref of all barriers, in shared memory.
    """

    def __init__(self, code: Code, plan: GroupUnitPlan, memory: Any) -> None:
        assert plan.bulk is not None
        self.code, self.plan, self.copies, self._memory = code, plan, plan.bulk, memory
        self._meetings = 0

    def prepare(self, thread: Any, warp: int) -> None:
        """Make all barriers, by the first thread of a block; ``warp``: threads of one."""
        code, stages, consumers = self.code, self.plan.stages, self.plan.consumers
        # Of all blocks that read what this one copies.
        users = consumers // warp * self.plan.cluster_blocks

        def one() -> list[Any]:
            for stage in range(stages):
                place = code.integer(stage)
                for at, arrive in ((self.filled(place), 1), (self.free(place), users)):
                    code.intrinsic(self.copies.prepare, [], [at, self.number(arrive)])
            code.intrinsic(self.copies.prepare, [], [self._meeting, self.number(consumers)])
            code.intrinsic(self.copies.visible, [], [])
            return []

        code.when(code.compare("eq", thread, code.integer(0)), one)
        if self.plan.cluster_blocks > 1:
            self.meet_cluster()
        else:
            barrier(code)

    def leave(self, stage: Any, lane: Any) -> None:
        """A warp has used a stage: one of its threads says so to each block that fills it."""
        code, copies, blocks = self.code, self.copies, self.plan.cluster_blocks

        def one() -> list[Any]:
            if blocks > 1:
                block = code.value("arith.index_cast", code.i32, lane)
                code.intrinsic(copies.arrive_at, [], [self.free(stage), block])
            else:
                code.intrinsic(copies.arrive, [code.i64], [self.free(stage)])
            return []

        code.when(code.compare("ult", lane, code.integer(blocks)), one)

    def meet_cluster(self) -> None:
        """All threads of a cluster wait for each other."""
        for name in self.copies.meet:
            self.code.intrinsic(name, [], [])

    def filled(self, stage: Any) -> Any:
        """The barrier whose phases end when a stage is filled."""
        return self._at(stage)

    def free(self, stage: Any) -> Any:
        """The barrier whose phases end when a stage is used by all."""
        return self._at(self.code.plus(stage, self.plan.stages))

    @property
    def _meeting(self) -> Any:
        return self._at(self.code.integer(2 * self.plan.stages))

    def meet(self) -> None:
        """The threads that multiply wait for each other, and see what all have stored."""
        code, at = self.code, self._meeting
        code.intrinsic(self.copies.arrive, [code.i64], [at])
        self.wait(at, self.number(self._meetings % 2))
        self._meetings += 1

    def wait(self, at: Any, parity: Any) -> None:
        """Wait until the phase of a parity has ended."""
        code = self.code
        loop = code.op("scf.while", [], [], regions=2)
        with code.inside(loop.regions[0].blocks.append()):
            (done,) = code.intrinsic(self.copies.is_over, [code.i1], [at, parity])
            true = code.constant(ir.IntegerAttr.get(code.i1, 1))
            code.op("scf.condition", [], [code.value("arith.xori", code.i1, done, true)])
        with code.inside(loop.regions[1].blocks.append()):
            code.op("scf.yield", [])

    def number(self, value: int) -> Any:
        """A constant of 32 bits."""
        return self.code.constant(ir.IntegerAttr.get(self.code.i32, value))

    def _at(self, place: Any) -> Any:
        code = self.code
        return code.pointer(code.address(self._memory, place, _BYTES), SHARED)
