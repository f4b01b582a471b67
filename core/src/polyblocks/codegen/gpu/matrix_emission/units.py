"""The body of a kernel whose warps call a matrix unit."""

from __future__ import annotations

from functools import partial
from typing import Any

from polyblocks.affine.gpu.plans.group_units import GroupUnitPlan
from polyblocks.affine.gpu.plans.kernel import Pipeline
from polyblocks.codegen.gpu.matrix_emission.boxed_results import COLUMNS, BoxedResults
from polyblocks.codegen.gpu.matrix_emission.exchanged_sums import ExchangedSums
from polyblocks.codegen.gpu.matrix_emission.group_steps import GroupSteps
from polyblocks.codegen.gpu.matrix_emission.operand_reads import OperandReads
from polyblocks.codegen.gpu.matrix_emission.overlapped_steps import OverlappedSteps
from polyblocks.codegen.gpu.matrix_emission.role_steps import Roles
from polyblocks.codegen.gpu.matrix_emission.scope import UnitScope
from polyblocks.codegen.gpu.matrix_emission.staged_steps import StagedSteps
from polyblocks.codegen.gpu.matrix_emission.sums import Sums
from polyblocks.codegen.gpu.matrix_emission.tile_copy import TileCopy
from polyblocks.codegen.gpu.matrix_emission.tile_loops import TileLoops
from polyblocks.codegen.gpu.matrix_emission.unit_calls import UnitCalls


class UnitEmitter:
    """Writes such a body at the current insertion point, in a scope of its own.

    Args:
        scope: of the kernel.
        pipeline: the steps as nodes.
    """

    def __init__(self, scope: UnitScope, pipeline: Pipeline) -> None:
        self.scope, self.code, self.plan = scope, scope.code, scope.plan
        self.pipeline = pipeline

    def emit(self) -> None:
        """The whole body, without the terminator."""
        scope = self.scope
        thread, block = self.code.id("thread"), self.code.id("block")
        if isinstance(self.plan, GroupUnitPlan) and self.plan.bulk is not None:
            Roles(scope, self.pipeline, thread).emit(partial(self._multiply, thread))
        else:
            scope.tile.begin(block, self.plan.order)
            copies = [TileCopy(scope, operand, thread) for operand in self.plan.product.operands]
            self._multiply(thread, self._emitter(copies))

    def _multiply(self, thread: Any, steps: TileLoops) -> None:
        """All steps of the reduction, and what is done with the sums."""
        scope = self.scope
        boxed = isinstance(self.plan, GroupUnitPlan) and self.plan.result is not None
        inits = scope.tile.place(scope.place(thread), (1, COLUMNS if boxed else 1))
        order = Sums(scope)
        sums = order.unpacked(steps.emit(order.packed(inits)))
        exchange = self.pipeline.exchange
        if exchange is None:
            scope.tile.finish(sums)
        elif boxed:
            BoxedResults(scope, exchange).emit(sums)
        else:
            ExchangedSums(scope, exchange, self.code.id("thread")).emit(sums)

    def _emitter(self, copies: list[TileCopy]) -> TileLoops:
        if isinstance(self.plan, GroupUnitPlan):
            return GroupSteps(self.scope, copies, self.pipeline)
        calls = UnitCalls(OperandReads(self.scope))
        emitter = StagedSteps if self.plan.copies_through_registers else OverlappedSteps
        return emitter(calls, copies, self.pipeline)
