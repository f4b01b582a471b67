"""Steps of a product whose warps have roles: some start the copies of tiles, others multiply."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polyblocks.affine.buffers.copies import PRODUCTS, USES, BoxCopy, Commit, Wait
from polyblocks.affine.expr import Expr
from polyblocks.affine.gpu.plans.group_units import IN_FLIGHT, GroupUnitPlan
from polyblocks.affine.gpu.plans.kernel import Pipeline
from polyblocks.affine.model import Node
from polyblocks.codegen.gpu.accesses.pipeline import SHARED
from polyblocks.codegen.gpu.matrix_emission.boxes import operands_of_box
from polyblocks.codegen.gpu.matrix_emission.group_steps import GroupSteps
from polyblocks.codegen.gpu.matrix_emission.scope import UnitScope
from polyblocks.codegen.gpu.matrix_emission.stage_barriers import StageBarriers
from polyblocks.codegen.gpu.matrix_emission.tile_loops import Part


class _RoleSteps(GroupSteps):
    """The part of both roles in the nodes.

    Args:
        scope: of the kernel.
        pipeline: the nodes.
        barriers: of its stages.
    """

    def __init__(self, scope: UnitScope, pipeline: Pipeline, barriers: StageBarriers) -> None:
        super().__init__(scope, [], pipeline)
        self.barriers = barriers

    def place(self, number: Expr) -> tuple[Any, Any]:
        """The stage of a tile, of type index, and the parity (``i32``) of its phase."""
        code, stages = self.code, self.plan.stages
        value = self.value(number)
        turn = code.remainder(code.quotient(value, stages), 2)
        return code.remainder(value, stages), code.value("arith.index_cast", code.i32, turn)


class ConsumerSteps(_RoleSteps):
    """Writes what the warps do that multiply."""

    def __init__(self, scope: UnitScope, pipeline: Pipeline, barriers: StageBarriers) -> None:
        super().__init__(scope, pipeline, barriers)
        #: The tile whose copies come before, and the last one whose products are done.
        self._begun = self._done = Expr(0)

    def control(self, node: Node) -> bool:
        if isinstance(node, (Commit, Wait)) and node.of != PRODUCTS:
            if isinstance(node, Commit) and node.of == USES:
                self._free()
            # For copies it waits where it multiplies.
            return True
        if isinstance(node, Wait):
            self._done = self._begun - node.pending
        return super().control(node)

    def segment(self, parts: list[Part]) -> None:
        """The products of a tile, when it is there."""
        calls: list[Part] = []
        for part in parts:
            if isinstance(part, BoxCopy):
                self._begun = self.number(part)
            else:
                calls.append(part)
        if not calls:
            return
        stage, parity = self.place(self._begun)
        if self._begun.is_constant and not self._begun.const:
            # Registers of sums are set here: behind `begin` that would be waited for.
            self._wait(IN_FLIGHT)
        self.barriers.wait(self.barriers.filled(stage), parity)
        super().segment(calls)

    def _free(self) -> None:
        """A thread of each warp says that a tile is used."""
        code, copies = self.code, self.barriers.copies
        stage, _ = self.place(self._done)

        def one() -> list[Any]:
            code.intrinsic(copies.arrive, [code.i64], [self.barriers.free(stage)])
            return []

        code.when(
            code.compare(
                "eq", code.remainder(self.scope.lane, self.scope.threads_of_warp), code.integer(0)
            ),
            one,
        )


class ProducerSteps(_RoleSteps):
    """Writes what the thread does that copies."""

    def control(self, node: Node) -> bool:
        if isinstance(node, (Commit, Wait)):
            # A copy waits for its place, and tells the barrier of that when it is there.
            return True
        return super().control(node)

    def segment(self, parts: list[Part]) -> None:
        """The copies of a tile, when its place is free."""
        copies = [part for part in parts if isinstance(part, BoxCopy)]
        if not copies:
            return
        code, barriers = self.code, self.barriers
        number = self.number(copies[0])
        stage, parity = self.place(number)
        # Of the phase before: in the first round places are free.
        other = code.value("arith.xori", code.i32, parity, barriers.number(1))
        barriers.wait(barriers.free(stage), other)
        at = barriers.filled(stage)
        bytes_ = barriers.number(self.plan.tile_bytes)
        code.intrinsic(barriers.copies.expect, [code.i64], [at, bytes_])
        for copy in copies:
            self._copy(copy, number, stage, at)

    def _copy(self, copy: BoxCopy, number: Expr, stage: Any, at: Any) -> None:
        """Start the copies of an operand's boxes."""
        code, plan, scope = self.code, self.plan, self.scope
        side = self.pipeline.side(copy.destination.buffer)
        operand = plan.product.operands[side]
        array, buffer, copies = plan.arrays[side], operand.load.buffer, self.barriers.copies
        steps = code.times(self.value(number), plan.sizes.depth)
        for panel in range(plan.boxes(operand)):
            to = scope.in_stage(
                scope.tiles[operand],
                stage,
                [code.integer(panel * plan.sizes.depth), code.integer(0)],
                0,
            )
            first = code.plus(scope.tile.first[side], panel * plan.line)
            inner = [first, steps] if plan.is_transposed(operand) else [steps, first]
            box = operands_of_box(scope, copies, buffer, array, inner, plan.box(operand))
            given = [code.pointer(to, SHARED), at, *box]
            code.intrinsic(copies.start, [], given, copy.source.location)


class Roles:
    """Writes the body of such a kernel at the current insertion point, where its tile is known.

    Args:
        scope: of the kernel.
        pipeline: the nodes.
        thread: its number in the block.
    """

    def __init__(self, scope: UnitScope, pipeline: Pipeline, thread: Any) -> None:
        plan = scope.plan
        assert isinstance(plan, GroupUnitPlan)
        assert plan.bulk is not None
        self.scope, self.code, self.pipeline, self.plan = scope, scope.code, pipeline, plan
        self.copies, self._thread = plan.bulk, thread
        self.barriers = StageBarriers(scope.code, plan, scope.barriers)
        scope.meet = self.barriers.meet

    def emit(self, consume: Callable[[ConsumerSteps], None]) -> None:
        """Both roles.

        Args:
            consume: writes what threads do that multiply.
        """
        code, plan = self.code, self.plan
        self.barriers.prepare(self._thread, self.scope.threads_of_warp)
        number = code.quotient(self._thread, self.scope.threads_of_warp)
        number = code.value("arith.index_cast", code.i32, number)
        (warp,) = code.intrinsic(self.copies.uniform, [code.i32], [number])
        self.scope.warp = warp
        first = plan.consumers // self.scope.threads_of_warp

        def producer() -> list[Any]:
            self._registers(self.copies.release, 0)
            begins = code.compare("eq", warp, self.barriers.number(first))
            code.when(begins, self._chosen)
            return []

        def consumer() -> list[Any]:
            self._registers(self.copies.take, 1)
            consume(ConsumerSteps(self.scope, self.pipeline, self.barriers))
            return []

        code.when(code.compare("ult", warp, self.barriers.number(first)), consumer, producer)

    def _chosen(self) -> list[Any]:
        """The code of the warp with the thread that copies."""
        (chosen,) = self.code.intrinsic(self.copies.elect, [self.code.i1], [])

        def copy() -> list[Any]:
            ProducerSteps(self.scope, self.pipeline, self.barriers).emit([])
            return []

        self.code.when(chosen, copy)
        return []

    def _registers(self, name: str, role: int) -> None:
        if self.plan.given is not None:
            self.code.intrinsic(name, [], [self.barriers.number(self.plan.given[role])])
