"""The body of a kernel whose groups of warps compute chains of products, and copy boxes.

Groups that multiply wait for the operands of a block of steps, and free their places. A thread each
fills those of the first products' operands, and of the second one's: the places of the latter are
free half a block later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

from polyblocks.affine.analysis.contractions import Operand
from polyblocks.affine.gpu.plans.boxed_arrays import BoxedArray
from polyblocks.affine.gpu.plans.group_chains import GroupChainPlan
from polyblocks.affine.model import Buffer
from polyblocks.codegen.gpu.accesses.pipeline import SHARED
from polyblocks.codegen.gpu.emission.code import Code
from polyblocks.codegen.gpu.matrix_emission.boxes import operands_of_box
from polyblocks.codegen.gpu.matrix_emission.chains.body import ChainEmitter
from polyblocks.codegen.gpu.matrix_emission.chains.copies import ChainCopies
from polyblocks.codegen.gpu.matrix_emission.chains.products import ChainProduct, GroupProduct
from polyblocks.codegen.gpu.matrix_emission.role_steps import RoleBranches
from polyblocks.codegen.gpu.matrix_emission.stage_barriers import StageBarriers

#: An operand of a product, and how it is copied.
_Copied = tuple[int, Operand, BoxedArray]


class BoxedCopies(ChainCopies):
    """Waits of the threads that multiply, and what those do that copy.

    Args:
        code: of the kernel.
        plan: of the chain.
        products: the first ones and the second one.
        barriers: of the places.
    """

    def __init__(
        self,
        code: Code,
        plan: GroupChainPlan,
        products: Sequence[ChainProduct],
        barriers: StageBarriers,
    ) -> None:
        super().__init__(code, plan, products)
        self.by_groups, self.products, self.barriers = plan, products, barriers
        self.copied = list(plan.copied())
        self._stage: Any = None
        #: The stage, and the parity of its phase, whose columns come next.
        self._columns: tuple[Any, Any] = (None, None)

    # Of threads that multiply

    def begin(self) -> None:
        """See :meth:`ChainCopies.begin`."""
        self.carried = list(self._start)
        self.barriers.wait(self.barriers.filled(self._of_rows), self.barriers.number(0))

    def turn(self, number: Any) -> Any:
        """See :meth:`ChainCopies.turn`."""
        del number
        before = self.carried[0], self.carried[1]
        self._stage, parity = self._following(before)
        self._columns = before if self.by_groups.overlaps else (self._stage, parity)
        self.carried = [self._stage, parity]
        self.barriers.wait(self.barriers.filled(self._stage), parity)
        return self._stage

    def between(self, number: Any) -> None:
        """See :meth:`ChainCopies.between`; sums of the first products are done."""
        del number
        self._leave(self._stage)

    def columns_arrive(self) -> None:
        """See :meth:`ChainCopies.columns_arrive`."""
        stage, parity = self._columns
        self.barriers.wait(self.barriers.filled(self._of_columns_at(stage)), parity)

    def columns_are_used(self) -> None:
        """See :meth:`ChainCopies.columns_are_used`."""
        self._leave(self._of_columns_at(self._columns[0]))

    @property
    def stage_of_columns(self) -> Any:
        """Where those are that come next."""
        return self._columns[0]

    def end_blocks(self) -> None:
        """The last block's columns come next."""
        self._columns = self.carried[0], self.carried[1]

    def _leave(self, place: Any) -> None:
        scope = self.first_products[0].scope
        lane = self.code.remainder(scope.lane, scope.threads_of_warp)
        self.barriers.leave(place, lane)

    # Of threads that copy

    def copy_first(self) -> list[Any]:
        """The rows, and the steps of all blocks."""
        rows = [each for each in self.copied if each[1].side == 0]
        self._fill(rows, self._of_rows, self.code.integer(0), self.code.integer(0))
        steps = [each for each in self.copied[:-1] if each[1].side == 1]
        self._over_blocks(lambda stage: stage, steps)
        return []

    def copy_columns(self) -> list[Any]:
        """The second product's operand of all blocks."""
        self._over_blocks(self._of_columns_at, self.copied[-1:])
        return []

    def _over_blocks(self, place: Callable[[Any], Any], copied: list[_Copied]) -> None:
        code = self.code

        def one(number: Any, state: list[Any]) -> list[Any]:
            stage, parity = self._following((state[0], state[1]))
            # Of the phase before: in the first round places are free.
            other = code.value("arith.xori", code.i32, parity, self.barriers.number(1))
            self.barriers.wait(self.barriers.free(place(stage)), other)
            self._fill(copied, place(stage), stage, code.times(number, self.plan.parts.block))
            return [stage, parity]

        code.loop(self.first, self.end, code.integer(1), list(self._start), one, kept=True)

    def _fill(self, copied: list[_Copied], place: Any, stage: Any, steps: Any) -> None:
        """Start copies of tiles to a stage; ``place`` is that of their barrier."""
        code, barriers, at = self.code, self.barriers, self.barriers.filled(place)
        nbytes = sum(self.by_groups.tile_bytes(*each[:2]) for each in copied)
        code.intrinsic(barriers.copies.expect, [code.i64], [at, barriers.number(nbytes)])
        for each in copied:
            self._boxes(*each, stage, steps, at)

    def _boxes(
        self, number: int, operand: Operand, array: BoxedArray, stage: Any, steps: Any, at: Any
    ) -> None:
        """Start the copies of an operand, panel by panel."""
        code, plan = self.code, self.by_groups.by_groups[number]
        scope, copies = self.products[number].scope, self.barriers.copies
        zero, last = code.integer(0), number == len(self.by_groups.firsts)
        # Steps of a block are columns of the first products, and steps of the second one.
        outer = scope.tile.first[0] if operand.side == 0 else zero if last else steps
        inner = steps if last else zero
        lines = plan.lines(operand)
        box = (plan.line, lines, *[1] * (len(array.extents) - 2))
        for panel in range(plan.panels(operand)):
            to = scope.in_stage(scope.tiles[operand], stage, [code.integer(panel * lines), zero], 0)
            ways = [outer, inner] if plan.is_transposed(operand) else [inner, outer]
            begin = [code.plus(ways[0], panel * plan.line), ways[1]]
            given = operands_of_box(scope, copies, operand.load.buffer, array, begin, box)
            start = [code.pointer(to, SHARED), at, *given]
            code.intrinsic(copies.start, [], start, operand.load.location)

    # Places

    @property
    def _start(self) -> tuple[Any, Any]:
        """The stage in front of the first one."""
        return self.code.integer(self.plan.stages - 1), self.barriers.number(1)

    def _following(self, state: tuple[Any, Any]) -> tuple[Any, Any]:
        return self.barriers.following(state, self.plan.stages)

    @property
    def _of_rows(self) -> Any:
        return self.code.integer(2 * self.plan.stages)

    def _of_columns_at(self, stage: Any) -> Any:
        return self.code.plus(stage, self.plan.stages)


class GroupChainEmitter(ChainEmitter):
    """Writes such a body at the current insertion point.

    Args:
        code, plan, memrefs, externals, shared: see :class:`ChainEmitter`.
        barriers: memory of barriers.
    """

    product: ClassVar[type[ChainProduct]] = GroupProduct

    def __init__(
        self,
        code: Code,
        plan: GroupChainPlan,
        memrefs: dict[Buffer, Any],
        externals: dict[Any, Any],
        shared: list[Any],
        barriers: Any,
    ) -> None:
        super().__init__(code, plan, memrefs, externals, shared)
        self.by_groups, self.barriers = plan, barriers

    def emit(self) -> None:
        """The whole body, without the terminator."""
        code, plan, thread = self.code, self.by_groups, self._begin()
        threads = self.first.scope.threads_of_warp
        barriers = StageBarriers(code, plan, self.barriers)
        barriers.prepare(thread, threads)
        roles = RoleBranches(code, plan, barriers)
        warp = roles.number_of_warp(thread, threads)
        copies = BoxedCopies(code, plan, self.products, barriers)
        given = warp, plan.consumers // threads, partial(self._consume, thread, warp, copies)
        roles.emit(*given, copies.copy_first, copies.copy_columns)

    def _consume(self, thread: Any, warp: Any, copies: BoxedCopies) -> list[Any]:
        for product in self.products:
            product.scope.warp = warp
            product.place(thread)
        self._compute(copies)
        return []
