"""Nodes of a product's steps as operations, where the unit reads shared memory."""

from __future__ import annotations

from itertools import product
from typing import Any

from polyblocks.affine.buffers.copies import COPIES, BoxCopy, Commit, Wait
from polyblocks.affine.expr import Expr, Mod
from polyblocks.affine.gpu.plans.group_units import GroupUnitPlan
from polyblocks.affine.gpu.plans.kernel import Pipeline
from polyblocks.affine.model import For, Node
from polyblocks.affine.multiply import UnitSteps
from polyblocks.codegen.gpu.accesses.pipeline import SHARED
from polyblocks.codegen.gpu.matrix_emission.scope import UnitScope
from polyblocks.codegen.gpu.matrix_emission.sums import sum_location
from polyblocks.codegen.gpu.matrix_emission.tile_copy import TileCopy
from polyblocks.codegen.gpu.matrix_emission.tile_loops import Part, TileLoops, Tiles
from polyblocks.mlir import ir
from polyblocks.target import GroupUnit


class GroupCalls:
    """Writes calls of a unit by a group of warps, and waits for its products.

    Args:
        scope: of the kernel, with operands in shared memory.
        plan: how the product is computed.
    """

    def __init__(self, scope: UnitScope, plan: GroupUnitPlan) -> None:
        assert isinstance(plan.unit, GroupUnit)
        self.scope, self.code, self.plan, self.unit = scope, scope.code, plan, plan.unit

    def multiply(self, stages: tuple[Any, Any], call: int, sums: list[Any]) -> list[Any]:
        """The sums with the products of a call of all units of the group.

        Args:
            stages: where rows are, and columns.
            call: its number in a tile.
            sums: registers.
        """
        rows, columns = self.plan.of_warp
        addresses = [
            [self._address(side, stages[side], call, unit) for unit in range(count)]
            for side, count in enumerate((rows, columns))
        ]
        found = list(sums)
        size = len(sums) // (rows * columns)
        for i, j in product(range(rows), range(columns)):
            at = (i * columns + j) * size
            panels, apart = self._layouts()
            given = [addresses[0][i], addresses[1][j], *panels, *apart]
            found[at : at + size] = self._of_sums(self.unit.intrinsic, given, found[at : at + size])
        return found

    def multiply_registers(
        self, rows: list[list[Any]], stage: Any, call: int, sums: list[Any]
    ) -> list[Any]:
        """The same with the first operand in registers.

        Args:
            rows: these, for each unit along rows.
            stage: where columns are.
            call: its number in a tile.
            sums: registers.
        """
        columns = self.plan.of_warp[1]
        addresses = [self._address(1, stage, call, unit) for unit in range(columns)]
        found = list(sums)
        size = len(sums) // (len(rows) * columns)
        for i, j in product(range(len(rows)), range(columns)):
            at = (i * columns + j) * size
            panels, apart = self._layouts()
            given = [addresses[j], panels[1], apart[1], *rows[i]]
            found[at : at + size] = self._of_sums(
                self.unit.with_registers, given, found[at : at + size]
            )
        return found

    def wait(self, pending: int, sums: list[Any]) -> list[Any]:
        """The sums when at most some groups of products are under way."""
        code = self.code
        number = code.constant(ir.IntegerAttr.get(code.i32, pending))
        return self._of_sums(self.unit.wait, [number], sums)

    def _address(self, side: int, stage: Any, call: int, unit: int) -> Any:
        """Where the steps of a call are, of the rows (or columns) of a unit."""
        code, plan = self.code, self.plan
        operand = plan.product.operands[side]
        first = code.plus(self.scope.corner[side], unit * plan.unit.shape[side])
        plus = call * plan.unit.shape[2]
        if plan.is_transposed(operand):
            panel = code.quotient(first, plan.line)
            first, plus = code.times(panel, plan.sizes.depth), plus * plan.line
        else:
            panel_of_call, inside = divmod(plus, plan.line)
            plus = panel_of_call * plan.lines(operand) * plan.line + inside
        place = [first, code.integer(0)]
        at = self.scope.in_stage(self.scope.tiles[operand], stage, place, plus)
        return code.pointer(at, SHARED)

    def _layouts(self) -> tuple[list[Any], list[Any]]:
        """Whether operands are in panels, and how far apart these are."""
        code, plan, operands = self.code, self.plan, self.plan.product.operands
        panels = [ir.IntegerAttr.get(code.i1, int(plan.is_transposed(o))) for o in operands]
        apart = [ir.IntegerAttr.get(code.i32, plan.panel_bytes(o)) for o in operands]
        return list(map(code.constant, panels)), list(map(code.constant, apart))

    def _of_sums(self, name: str, given: list[Any], sums: list[Any]) -> list[Any]:
        """The results of a function of registers of sums."""
        types = [v.type for v in sums]
        struct = ir.Type.parse(f"!llvm.struct<({', '.join(map(str, types))})>")
        (made,) = self.code.intrinsic(name, [struct], [*given, *sums], sum_location(self.plan))
        return self.code.fields(made, types)


class GroupSteps(TileLoops):
    """Writes the steps of a unit that several warps call, at the current insertion point.

    Args:
        scope: of the kernel.
        copies: the thread's part of the copies of rows, and of columns.
        pipeline: the nodes.
    """

    def __init__(self, scope: UnitScope, copies: list[TileCopy], pipeline: Pipeline) -> None:
        super().__init__(scope, copies, pipeline)
        plan = scope.plan
        assert isinstance(plan, GroupUnitPlan)
        assert isinstance(plan.unit, GroupUnit)
        self.plan, self.unit = plan, plan.unit
        self.group_calls = GroupCalls(scope, plan)

    def control(self, node: Node) -> bool:
        if isinstance(node, (Commit, Wait)) and node.of != COPIES:
            if isinstance(node, Wait):
                self._wait(node.pending)
            else:
                self.code.intrinsic(self.unit.close, [], [])
            return True
        done = super().control(node)
        if isinstance(node, Wait):
            # Its own copies; those of other threads behind the barrier that follows.
            self.code.intrinsic(self.unit.visible, [], [])
        return done

    def segment(self, parts: list[Part]) -> None:
        """Copies and products, one by one."""
        calls = [part for part in parts if isinstance(part, UnitSteps)]
        for part in parts:
            if isinstance(part, BoxCopy):
                self._start(part)
                continue
            if part is calls[0]:
                self.code.intrinsic(self.unit.begin, [], [])
            self._call(part)

    def _start(self, copy: BoxCopy) -> None:
        part, number = self.copies[self.pipeline.side(copy.destination.buffer)], self.number(copy)
        stage, whole = self.stage(copy.destination.index[0]), self.is_whole(copy)
        for round_ in part.rounds:
            part.start(round_, self.begin(number), stage, whole)

    def _call(self, steps: UnitSteps) -> None:
        """The products of a call, of all units of the group."""
        call = self._number_of_call(steps)
        stage = self.stage(steps.loads[0].index[0])
        self.sums = self.group_calls.multiply((stage, stage), call, self.sums)

    def _number_of_call(self, steps: UnitSteps) -> int:
        """Which call of a tile it is, by the place of its first step, of the first row."""
        at = {**dict.fromkeys(self._outers, Expr(0)), steps.loop.var: self.first_step(steps.loop)}
        panels = self.plan.is_transposed(self.plan.product.operands[0])
        place = steps.loads[0].index[1 if panels else 2]
        return place.substitute(at).const // self.plan.unit.shape[2]

    def _wait(self, pending: int) -> None:
        self.sums = self.group_calls.wait(pending, self.sums)

    def stage(self, expr: Expr) -> Any:
        """A number of a stage, of type index."""
        if expr.is_constant:
            return self.code.integer(expr.const)
        ((atom, _),) = expr.terms
        tile, stages = atom.dividend if isinstance(atom, Mod) else expr, self.plan.stages
        value, ahead = self.terms(tile)
        return self.code.remainder(self.code.plus(value, ahead % stages), stages)

    def loop(self, loop: For) -> None:
        code, outer = self.code, self.tiles

        def tile(number: Any, sums: list[Any]) -> list[Any]:
            self.sums, self.tiles = list(sums), Tiles(loop.var, number, 0, {})
            self.run(loop.body)
            return self.sums

        low, high = code.integer(0), code.integer(loop.var.extent)
        self.sums = list(code.loop(low, high, code.integer(1), self.sums, tile, kept=True))
        self.tiles = outer
