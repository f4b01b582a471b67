"""The operands of a chain of products: in shared memory, copied some blocks of steps ahead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polyblocks.affine.gpu.plans.chains import ChainPlan
from polyblocks.affine.gpu.plans.units import UnitPlan
from polyblocks.codegen.gpu.accesses.pipeline import Pipeline
from polyblocks.codegen.gpu.accesses.places import Sum
from polyblocks.codegen.gpu.emission.code import Code
from polyblocks.codegen.gpu.emission.combine import barrier
from polyblocks.codegen.gpu.emission.tiles import TileEmitter
from polyblocks.codegen.gpu.matrix_emission.operand_reads import OperandReads
from polyblocks.codegen.gpu.matrix_emission.scope import UnitScope
from polyblocks.codegen.gpu.matrix_emission.sums import Sums
from polyblocks.codegen.gpu.matrix_emission.tile_copy import TileCopy
from polyblocks.codegen.gpu.matrix_emission.unit_calls import UnitCalls


class ChainProduct:
    """One of both products.

    Args:
        tile: its elements of the thread.
        plan: how it is computed.
        tiles: memory of its operands in shared memory, or None.
    """

    def __init__(self, tile: TileEmitter, plan: UnitPlan, tiles: list[Any]) -> None:
        operands = plan.product.operands
        given = {o: t for o, t in zip(operands, tiles, strict=True) if t is not None}
        self.tile, self.plan = tile, plan
        self.scope = UnitScope(tile, plan, given)
        self.reads = OperandReads(self.scope)
        self.calls, self.sums = UnitCalls(self.reads), Sums(self.scope)
        self.places: tuple[list[Any], list[Any]] = ([], [])

    def place(self, thread: Any) -> None:
        """Find the thread's rows and columns."""
        self.places = self.scope.place(thread)
        for side in range(2):
            self.tile.stand(self.places[side], side)

    def copy(self, side: int, thread: Any) -> TileCopy:
        """The thread's part of the copies of an operand."""
        return TileCopy(self.scope, self.plan.product.operands[side], thread)

    def operand(self, side: int, stage: Any, call: int) -> list[Any]:
        """The registers of an operand for a call."""
        return [v for load in self.reads.loads_of(side, stage, call) for v in load()]


class ChainCopies:
    """Copies of operands to shared memory, some blocks of steps ahead.

    Args:
        code: of the kernel.
        plan: of the chain.
        products: the first one and the second one.
        thread: its number.
    """

    def __init__(
        self, code: Code, plan: ChainPlan, products: tuple[ChainProduct, ChainProduct], thread: Any
    ) -> None:
        assert plan.first.copies is not None
        self.code, self.plan, (self.first_product, self.second_product) = code, plan, products
        self.pipeline = Pipeline(code, plan.first.copies)
        self.rows = self.first_product.copy(0, thread)
        self.steps = self.first_product.copy(1, thread)
        self.columns = self.second_product.copy(1, thread)
        self.first, self.end = self._bounds()

    def _bounds(self) -> tuple[Any, Any]:
        """The first block of steps, and the end of those that some row of the tile needs."""
        code, parts = self.code, self.plan.parts
        first, end = code.integer(0), code.integer(parts.blocks.var.extent)
        nodes, (row, *_) = self.second_product.tile.nodes, parts.first.rows
        lower, upper = parts.bounds
        at = self.second_product.tile.first[0]
        for bound in lower:
            nodes.variables[row] = at
            first = code.value("arith.maxsi", code.index, first, nodes.expr(bound))
        for bound in upper:
            last = code.plus(at, self.plan.tile[0] - 1)
            limit = code.integer(row.extent - 1)
            nodes.variables[row] = code.value("arith.minui", code.index, last, limit)
            end = code.value("arith.minsi", code.index, end, nodes.expr(bound))
        return first, end

    def begin(self) -> None:
        """The rows, and the first blocks of steps."""
        zero = self.code.integer(0)
        for round_ in self.rows.rounds:
            self.rows.start(round_, Sum(zero), zero, self._is_whole)
        if self.plan.stages == 1:
            self._later(self.first, 0, self._start_steps)
            self.pipeline.close()
        for number in range(self.plan.stages - 1):
            self._later(self.first, number, self._start_steps, self._start_columns)
            self.pipeline.close()

    def turn(self, number: Any) -> Any:
        """Begin copies of a later block; the stage of this one when it is there."""
        code, ahead = self.code, self.plan.stages - 1
        self.pipeline.wait(max(ahead - 1, 0))
        # And all have read the block before, in whose place the later one comes.
        barrier(code)
        if not ahead:
            self._start_columns(number)
        else:
            self._later(number, ahead, self._start_steps, self._start_columns)
        self.pipeline.close()
        return code.remainder(number, self.plan.stages)

    def between(self, number: Any) -> None:
        """Wait for the second product's operand, and begin copies of the next block's first one.

        Where there is one stage, all have read that when they wait.
        """
        if self.plan.stages > 1:
            return
        self.pipeline.wait(0)
        barrier(self.code)
        self._later(number, 1, self._start_steps)
        self.pipeline.close()

    def _later(self, number: Any, ahead: int, *copies: Callable[[Any], None]) -> None:
        """Copies of a later block, if there is one."""
        code = self.code
        later = code.plus(number, ahead)

        def start() -> list[Any]:
            for copy in copies:
                copy(later)
            return []

        code.when(code.compare("slt", later, self.end), start)

    @property
    def _is_whole(self) -> bool:
        return self.plan.first.sizes.counts[2] % self.plan.first.sizes.depth == 0

    def _start_steps(self, number: Any) -> None:
        """Copies of the first product's operand of a block of steps."""
        code, tile = self.code, self.first_product.tile
        known = tile.first
        tile.first = [known[0], code.times(number, self.plan.parts.block)]
        stage = code.remainder(number, self.plan.stages)
        for round_ in self.steps.rounds:
            self.steps.start(round_, Sum(code.integer(0)), stage, self._is_whole)
        tile.first = known

    def _start_columns(self, number: Any) -> None:
        """Copies of the second product's operand of a block of steps."""
        code, block = self.code, self.plan.parts.block
        whole = self.plan.second.sizes.counts[2] % block == 0
        stage, first = code.remainder(number, self.plan.stages), code.times(number, block)
        for round_ in self.columns.rounds:
            self.columns.start(round_, Sum(first), stage, whole)
