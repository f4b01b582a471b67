"""Steps of a product whose warps have roles: some start the copies of tiles, others multiply."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from polyblocks.affine.buffers.copies import PRODUCTS, USES, BoxCopy, Commit, Wait
from polyblocks.affine.expr import Expr
from polyblocks.affine.gpu.plans.group_chains import GroupChainPlan
from polyblocks.affine.gpu.plans.group_units import IN_FLIGHT, GroupUnitPlan
from polyblocks.affine.gpu.plans.kernel import Pipeline
from polyblocks.affine.gpu.plans.windowed_arrays import WindowedArray
from polyblocks.affine.model import For, Node
from polyblocks.codegen.gpu.accesses.pipeline import SHARED
from polyblocks.codegen.gpu.emission.code import Code
from polyblocks.codegen.gpu.matrix_emission.boxed_results import BoxedResults
from polyblocks.codegen.gpu.matrix_emission.boxes import operands_of_box, operands_of_windows
from polyblocks.codegen.gpu.matrix_emission.group_steps import GroupSteps
from polyblocks.codegen.gpu.matrix_emission.scope import UnitScope
from polyblocks.codegen.gpu.matrix_emission.stage_barriers import StageBarriers
from polyblocks.codegen.gpu.matrix_emission.tile_loops import Part, Tiles


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
        #: The stage of the last tile and the parity of its phase: in the beginning those in front
        #: of the first one; and the stage of the tile before.
        self.state = scope.code.integer(self.plan.stages - 1), barriers.number(1)
        self.before: Any = None

    def place(self) -> tuple[Any, Any]:
        """The stage of the next tile, of type index, and the parity (``i32``) of its phase."""
        self.before = self.state[0]
        self.state = self.barriers.following(self.state, self.plan.stages)
        return self.state

    def stage(self, expr: Expr) -> Any:
        """That of the tile whose products, or copies, are under way."""
        del expr
        return self.state[0]

    def loop(self, loop: For) -> None:
        """As many tiles as a loop is over; they carry the stage and its parity."""
        code, outer, count = self.code, self.tiles, len(self.sums)

        def tile(number: Any, carried: list[Any]) -> list[Any]:
            self.sums, self.state = list(carried[:count]), (carried[count], carried[count + 1])
            self.tiles = Tiles(loop.var, number, 0, {})
            self.run(loop.body)
            return [*self.sums, *self.state]

        low, high = code.integer(0), code.integer(loop.var.extent)
        begin = [*self.sums, *self.state]
        found = list(code.loop(low, high, code.integer(1), begin, tile, kept=True))
        self.sums, self.state = found[:count], (found[count], found[count + 1])
        self.tiles = outer


class ConsumerSteps(_RoleSteps):
    """Writes what the warps do that multiply."""

    def __init__(self, scope: UnitScope, pipeline: Pipeline, barriers: StageBarriers) -> None:
        super().__init__(scope, pipeline, barriers)
        #: The tile whose copies come before, and tiles whose products are under way.
        self._begun, self._pending = Expr(0), 0

    def control(self, node: Node) -> bool:
        if isinstance(node, (Commit, Wait)) and node.of != PRODUCTS:
            if isinstance(node, Commit) and node.of == USES:
                self._free()
            # For copies it waits where it multiplies.
            return True
        if isinstance(node, Wait):
            self._pending = node.pending
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
        stage, parity = self.place()
        if self._begun.is_constant and not self._begun.const:
            # Registers of sums are set here: behind `begin` that would be waited for.
            self._wait(IN_FLIGHT)
        self.barriers.wait(self.barriers.filled(stage), parity)
        super().segment(calls)

    def _free(self) -> None:
        """A thread of each warp says that a tile is used."""
        stage = self.before if self._pending else self.state[0]
        lane = self.code.remainder(self.scope.lane, self.scope.threads_of_warp)
        self.barriers.leave(stage, lane)


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
        stage, parity = self.place()
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
        steps, extents = code.times(self.value(number), plan.sizes.depth), plan.box(operand)
        sharers, part = plan.sharers(operand), code.integer(0)
        if sharers > 1:
            part = code.remainder(code.id("block"), sharers)
        for panel in range(boxes := plan.boxes(operand)):
            # Lines of the tile before those of the box, and rows (or columns) of these.
            lines = code.plus(code.times(part, boxes * extents[1]), panel * extents[1])
            before = lines
            if plan.is_transposed(operand):
                before = code.plus(code.times(part, boxes * plan.line), panel * plan.line)
            to = scope.in_stage(scope.tiles[operand], stage, [lines, code.integer(0)], 0)
            first = code.add(scope.tile.first[side], before)
            name = copies.share if sharers > 1 else copies.start
            if isinstance(array, WindowedArray):
                assert copies.windows is not None
                name = copies.windows.share if sharers > 1 else copies.windows.start
                box = operands_of_windows(scope, copies, buffer, array, first, steps, extents)
            else:
                inner = [first, steps] if plan.is_transposed(operand) else [steps, first]
                box = operands_of_box(scope, copies, buffer, array, inner, extents)
            given = [code.pointer(to, SHARED), at, *box]
            code.intrinsic(name, [], given, copy.source.location)


class RoleBranches:
    """Writes the branches of warps with roles at the current insertion point.

    Args:
        code: of the kernel.
        plan: with bulk copies.
        barriers: of its stages.
    """

    def __init__(
        self, code: Code, plan: GroupUnitPlan | GroupChainPlan, barriers: StageBarriers
    ) -> None:
        self.code, self.plan, self.barriers = code, plan, barriers

    def number_of_warp(self, thread: Any, warp: int) -> Any:
        """The number of a thread's warp (``i32``), known to be the same in all of these."""
        code = self.code
        number = code.value("arith.index_cast", code.i32, code.quotient(thread, warp))
        (found,) = code.intrinsic(self.barriers.copies.uniform, [code.i32], [number])
        return found

    def emit(
        self,
        warp: Any,
        first: int,
        consume: Callable[[], list[Any]],
        *copying: Callable[[], list[Any]],
    ) -> None:
        """All roles.

        Args:
            warp: the number of the thread's warp.
            first: of those that copy.
            consume: writes what threads do that multiply.
            copying: writes what a thread of each further warp does.
        """
        code, copies = self.code, self.barriers.copies

        def producers() -> list[Any]:
            self._registers(copies.release, 0)
            for number, copy in enumerate(copying):
                begins = code.compare("eq", warp, self.barriers.number(first + number))
                code.when(begins, partial(self._chosen, copy))
            return []

        def consumer() -> list[Any]:
            self._registers(copies.take, 1)
            return consume()

        code.when(code.compare("ult", warp, self.barriers.number(first)), consumer, producers)

    def _chosen(self, copy: Callable[[], list[Any]]) -> list[Any]:
        """The code of a warp with a thread that copies."""
        (chosen,) = self.code.intrinsic(self.barriers.copies.elect, [self.code.i1], [])
        self.code.when(chosen, copy)
        return []

    def _registers(self, name: str, role: int) -> None:
        if self.plan.given is not None:
            self.code.intrinsic(name, [], [self.barriers.number(self.plan.given[role])])


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
        self._thread = thread
        self.barriers = StageBarriers(scope.code, plan, scope.barriers)
        scope.meet = self.barriers.meet

    def emit(self, consume: Callable[[ConsumerSteps], None]) -> None:
        """Both roles.

        Args:
            consume: writes what threads do that multiply.
        """
        code, plan = self.code, self.plan
        threads = self.scope.threads_of_warp
        self.barriers.prepare(self._thread, threads)
        roles = RoleBranches(code, plan, self.barriers)
        warp = self.scope.warp = roles.number_of_warp(self._thread, threads)

        def consumer() -> list[Any]:
            steps = ConsumerSteps(self.scope, self.pipeline, self.barriers)
            self._over_tiles(steps, partial(consume, steps))
            if plan.persistent:
                BoxedResults(self.scope, self.pipeline.exchange).end()
            return []

        def copy() -> list[Any]:
            steps = ProducerSteps(self.scope, self.pipeline, self.barriers)
            self._over_tiles(steps, lambda: steps.emit([]))
            return []

        roles.emit(warp, plan.consumers // threads, consumer, copy)
        if plan.cluster_blocks > 1:
            # No block ends while another one still arrives at its barriers.
            self.barriers.meet_cluster()

    def _over_tiles(self, steps: _RoleSteps, body: Callable[[], Any]) -> None:
        """A role's part in one tile, or in all tiles of a block."""
        code, plan, tile = self.code, self.plan, self.scope.tile
        block = code.id("block")
        if not plan.persistent:
            tile.begin(block, plan.order)
            body()
            return

        def one(number: Any, state: list[Any]) -> list[Any]:
            tile.begin(number, plan.order)
            steps.state = state[0], state[1]
            body()
            return list(steps.state)

        ends, step = code.integer(plan.sizes.blocks), code.integer(plan.blocks)
        code.loop(block, ends, step, list(steps.state), one, kept=True)
