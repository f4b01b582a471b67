"""Barriers of the stages of tiles: those that are filled, and those that are free."""

from __future__ import annotations

from typing import Any

from polyblocks.affine.gpu.plans.group_chains import GroupChainPlan
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

    def __init__(self, code: Code, plan: GroupUnitPlan | GroupChainPlan, memory: Any) -> None:
        assert plan.bulk is not None
        self.code, self.plan, self.copies, self._memory = code, plan, plan.bulk, memory
        self._stages, self._blocks = plan.stages, 1
        if isinstance(plan, GroupChainPlan):
            self._stages = plan.barrier_stages
        else:
            self._blocks = plan.cluster_blocks
        self._meetings = 0

    def following(self, state: tuple[Any, Any], stages: int) -> tuple[Any, Any]:
        """The stage behind one, of type index, and the parity (``i32``) of its phase."""
        code, (before, parity) = self.code, state
        stage = code.plus(before, 1)
        ends = code.compare("eq", stage, code.integer(stages))
        stage = code.value("arith.select", code.index, ends, code.integer(0), stage)
        turn = code.value("arith.extui", code.i32, ends)
        return stage, code.value("arith.xori", code.i32, parity, turn)

    def prepare(self, thread: Any, warp: int) -> None:
        """Make all barriers, by the first thread of a block; ``warp``: threads of one."""
        code, stages, consumers = self.code, self._stages, self.plan.consumers
        # Of all blocks that read what this one copies.
        users = consumers // warp * self._blocks

        def one() -> list[Any]:
            for stage in range(stages):
                place = code.integer(stage)
                for at, arrive in ((self.filled(place), 1), (self.free(place), users)):
                    code.intrinsic(self.copies.prepare, [], [at, self.number(arrive)])
            code.intrinsic(self.copies.prepare, [], [self._meeting, self.number(consumers)])
            code.intrinsic(self.copies.visible, [], [])
            return []

        code.when(code.compare("eq", thread, code.integer(0)), one)
        if self._blocks > 1:
            self.meet_cluster()
        else:
            barrier(code)

    def leave(self, stage: Any, lane: Any) -> None:
        """A warp has used a stage: one of its threads says so to each block that fills it."""
        code, copies, blocks = self.code, self.copies, self._blocks

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
        return self._at(self.code.plus(stage, self._stages))

    @property
    def _meeting(self) -> Any:
        return self._at(self.code.integer(2 * self._stages))

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
