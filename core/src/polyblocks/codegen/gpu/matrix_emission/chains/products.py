"""One product of a chain: its operands in registers or in shared memory, and its sums."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

from polyblocks.affine.gpu.plans.group_units import GroupUnitPlan
from polyblocks.affine.gpu.plans.units import UnitPlan
from polyblocks.codegen.gpu.emission.tiles import TileEmitter
from polyblocks.codegen.gpu.matrix_emission.group_steps import GroupCalls
from polyblocks.codegen.gpu.matrix_emission.operand_reads import OperandReads
from polyblocks.codegen.gpu.matrix_emission.scope import UnitScope
from polyblocks.codegen.gpu.matrix_emission.sums import Sums
from polyblocks.codegen.gpu.matrix_emission.tile_copy import TileCopy
from polyblocks.codegen.gpu.matrix_emission.unit_calls import UnitCalls
from polyblocks.mlir import ir


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
        self.sums = Sums(self.scope)
        self.places: tuple[list[Any], list[Any]] = ([], [])

    def place(self, thread: Any) -> None:
        """Find the thread's rows and columns."""
        self.places = self.scope.place(thread)
        for side in range(2):
            self.tile.stand(self.places[side], side)

    def hold_rows(self) -> None:
        """Read the first operand of all blocks of steps: it stays in registers."""
        raise NotImplementedError

    def multiply(
        self, rows: Callable[[int], list[list[Any]]] | None, stage: Any, sums: list[Any]
    ) -> list[Any]:
        """The products of a block of steps, added to sums.

        Args:
            rows: the first operand's registers of a call, for each unit along rows; None: they are
                in shared memory.
            stage: where the operands are there.
            sums: registers.
        """
        raise NotImplementedError


class GroupProduct(ChainProduct):
    """One of a unit that reads shared memory."""

    def __init__(self, tile: TileEmitter, plan: UnitPlan, tiles: list[Any]) -> None:
        super().__init__(tile, plan, tiles)
        assert isinstance(plan, GroupUnitPlan)
        self.calls = GroupCalls(self.scope, plan)

    def multiply(
        self, rows: Callable[[int], list[list[Any]]] | None, stage: Any, sums: list[Any]
    ) -> list[Any]:
        """See :meth:`ChainProduct.multiply`; these sums are done."""
        return self.calls.wait(0, self.issue(rows, stage, sums))

    def issue(
        self, rows: Callable[[int], list[list[Any]]] | None, stage: Any, sums: list[Any]
    ) -> list[Any]:
        """The same sums, as one group of products that is under way."""
        code, unit, calls = self.scope.code, self.calls.unit, range(self.plan.calls)
        given = [] if rows is None else [rows(call) for call in calls]
        code.intrinsic(unit.begin, [], [])
        for call in calls:
            if rows is None:
                sums = self.calls.multiply((code.integer(0), stage), call, sums)
            else:
                sums = self.calls.multiply_registers(given[call], stage, call, sums)
        code.intrinsic(unit.close, [], [])
        return sums


class WarpProduct(ChainProduct):
    """One of a unit that warps call one by one, with operands in registers."""

    def __init__(self, tile: TileEmitter, plan: UnitPlan, tiles: list[Any]) -> None:
        super().__init__(tile, plan, tiles)
        self.reads = OperandReads(self.scope, one_stage=plan.stages == 1)
        self.calls = UnitCalls(self.reads)
        self._held: list[list[list[Any]]] = []

    def copy(self, side: int, thread: Any) -> TileCopy:
        """The thread's part of the copies of an operand."""
        return TileCopy(self.scope, self.plan.product.operands[side], thread)

    def hold_rows(self) -> None:
        """See :meth:`ChainProduct.hold_rows`."""
        zero = self.scope.code.integer(0)
        self._held = [self._read(0, zero, call) for call in range(self.plan.calls)]

    def multiply(
        self, rows: Callable[[int], list[list[Any]]] | None, stage: Any, sums: list[Any]
    ) -> list[Any]:
        """See :meth:`ChainProduct.multiply`."""
        held = self._held.__getitem__ if self._held else None
        read = rows or held or (lambda call: self._read(0, self.scope.code.integer(0), call))
        if self.plan.fence:
            return self._in_order(read, stage, sums)
        for call in range(self.plan.calls):
            given = [v for each in read(call) for v in each]
            columns = [v for load in self.reads.loads_of(1, stage, call) for v in load()]
            sums = self.calls.multiply([*given, *columns], sums)
        return sums

    def _in_order(
        self, read: Callable[[int], list[list[Any]]], stage: Any, sums: list[Any]
    ) -> list[Any]:
        """Operands are read a few products ahead of theirs, in this order."""
        height, width = self.plan.of_warp
        ahead = self.plan.read_ahead
        places = list(product(range(self.plan.calls), range(width)))
        rows: dict[int, list[list[Any]]] = {}
        columns: list[list[Any]] = []
        for number, (call, j) in enumerate(places):
            while len(columns) < min(number + ahead, len(places)):
                later, unit = places[len(columns)]
                if not unit:
                    rows[later] = read(later)
                columns += self.reads.fragments_of(1, stage, later, (unit,))
            self.fence()
            for i in range(height):
                sums = self.calls.multiplied(rows[call][i], columns[number], sums, i, j)
        self.fence()
        return sums

    def fence(self) -> None:
        """Accesses stay in front of the products that follow."""
        if self.plan.fence:
            code = self.scope.code
            none = code.constant(ir.IntegerAttr.get(code.i32, 0))
            code.intrinsic(self.plan.fence, [], [none])

    def _read(self, side: int, stage: Any, call: int) -> list[list[Any]]:
        """The registers of an operand in shared memory for a call, for each unit along its side."""
        if self.plan.loads is None:
            return self.reads.fragments_of(side, stage, call, tuple(range(self.plan.of_warp[side])))
        return [[v for load in self.reads.loads_of(side, stage, call) for v in load()]]
