"""The operands of a chain of products: in shared memory, copied some blocks of steps ahead."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from polyblocks.affine.gpu.plans.chains import ChainPlan
from polyblocks.codegen.gpu.accesses.pipeline import Pipeline
from polyblocks.codegen.gpu.accesses.places import Sum
from polyblocks.codegen.gpu.emission.code import Code
from polyblocks.codegen.gpu.emission.combine import barrier
from polyblocks.codegen.gpu.matrix_emission.chains.products import ChainProduct, WarpProduct


class ChainCopies:
    """Copies of operands to shared memory, some blocks of steps ahead.

    Args:
        code: of the kernel.
        plan: of the chain.
        products: the first ones and the second one.

    Attributes:
        first, end: the first block of steps, and the end of those that some row of the tile needs.
        carried: values that a block hands on to the next one.
    """

    def __init__(self, code: Code, plan: ChainPlan, products: Sequence[ChainProduct]) -> None:
        self.code, self.plan = code, plan
        *self.first_products, self.second_product = products
        self.first, self.end = self._bounds()
        self.carried: list[Any] = []

    def begin(self) -> None:
        """The rows, and the first blocks of steps."""
        raise NotImplementedError

    def rows_arrive(self) -> None:
        """Wait for the rows."""
        raise NotImplementedError

    def turn(self, number: Any) -> Any:
        """Begin copies of a later block; the stage of this one when it is there."""
        raise NotImplementedError

    def between(self, number: Any) -> None:
        """Wait for the second product's operand, and begin copies of the next block's first one.

        Where there is one stage, all have read that when they wait.
        """
        raise NotImplementedError

    def columns_arrive(self) -> None:
        """Wait for the second product's operand, if that has not been done in between."""

    def columns_are_used(self) -> None:
        """The second product of a block is done."""

    def _bounds(self) -> tuple[Any, Any]:
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


class CopiesByThreads(ChainCopies):
    """Copies that each thread does a part of.

    Args:
        code, plan, products: see :class:`ChainCopies`.
        thread: its number.
    """

    def __init__(
        self, code: Code, plan: ChainPlan, products: Sequence[WarpProduct], thread: Any
    ) -> None:
        super().__init__(code, plan, products)
        *firsts, second = products
        self.rows = [product.copy(0, thread) for product in firsts]
        self.steps = [product.copy(1, thread) for product in firsts]
        self.columns = second.copy(1, thread)
        self.firsts = firsts

    def _of_each(self) -> Iterator[tuple[int, bool]]:
        """The number of each first product, and whether it has whole tiles of its own steps."""
        for number, first in enumerate(self.plan.firsts):
            yield number, first.sizes.counts[2] % first.sizes.depth == 0

    def _with_steps(self, number: Any, copy: Callable[[int, bool], Any]) -> list[Any]:
        """The results of copies of the first products' operands of a block of steps."""
        results = []
        for each, whole in self._of_each():
            tile = self.first_products[each].tile
            known = tile.first
            tile.first = [known[0], self.code.times(number, self.plan.parts.block)]
            results.append(copy(each, whole))
            tile.first = known
        return results

    def _of_columns(self, number: Any) -> tuple[Sum, bool]:
        """The first step of a block of the second product, and whether all of them exist."""
        block = self.plan.parts.block
        whole = self.plan.second.sizes.counts[2] % block == 0
        return Sum(self.code.times(number, block)), whole


class CopiesPastRegisters(CopiesByThreads):
    """Copies that go on while their threads do."""

    def begin(self) -> None:
        """See :meth:`ChainCopies.begin`."""
        zero = self.code.integer(0)
        for each, whole in self._of_each():
            for round_ in self.rows[each].rounds:
                self.rows[each].start(round_, Sum(zero), zero, whole)
        if self.plan.stages == 1:
            self._later(self.first, 0, self._start_steps)
            self._pipeline.close()
        for number in range(self.plan.stages - 1):
            self._later(self.first, number, self._start_steps, self._start_columns)
            self._pipeline.close()

    def rows_arrive(self) -> None:
        """See :meth:`ChainCopies.rows_arrive`; they are in the first group of copies."""
        self._pipeline.wait(max(self.plan.stages - 2, 0))
        barrier(self.code)

    def turn(self, number: Any) -> Any:
        """See :meth:`ChainCopies.turn`."""
        code, ahead = self.code, self.plan.stages - 1
        self._pipeline.wait(max(ahead - 1, 0))
        # And all have read the block before, in whose place the later one comes.
        barrier(code)
        if not ahead:
            self._start_columns(number)
        else:
            self._later(number, ahead, self._start_steps, self._start_columns)
        self._pipeline.close()
        return code.remainder(number, self.plan.stages)

    def between(self, number: Any) -> None:
        """See :meth:`ChainCopies.between`."""
        if self.plan.stages > 1:
            return
        self._pipeline.wait(0)
        barrier(self.code)
        self._later(number, 1, self._start_steps)
        self._pipeline.close()

    @property
    def _pipeline(self) -> Pipeline:
        assert self.plan.first.copies is not None
        return Pipeline(self.code, self.plan.first.copies)

    def _later(self, number: Any, ahead: int, *copies: Callable[[Any], None]) -> None:
        """Copies of a later block, if there is one."""
        code = self.code
        later = code.plus(number, ahead)

        def start() -> list[Any]:
            for copy in copies:
                copy(later)
            return []

        code.when(code.compare("slt", later, self.end), start)

    def _start_steps(self, number: Any) -> None:
        """Copies of the first product's operand of a block of steps."""
        code = self.code

        def start(each: int, whole: bool) -> None:
            stage = code.remainder(number, self.plan.stages)
            for round_ in self.steps[each].rounds:
                self.steps[each].start(round_, Sum(code.integer(0)), stage, whole)

        self._with_steps(number, start)

    def _start_columns(self, number: Any) -> None:
        """Copies of the second product's operand of a block of steps."""
        stage = self.code.remainder(number, self.plan.stages)
        begin, whole = self._of_columns(number)
        for round_ in self.columns.rounds:
            self.columns.start(round_, begin, stage, whole)


class CopiesThroughRegisters(CopiesByThreads):
    """Loads of an operand come while the other product is computed, and are stored then.

    There is one stage of each operand. The next block's first operand is on its way from one block
    to the next.
    """

    def begin(self) -> None:
        """See :meth:`ChainCopies.begin`."""
        zero = self.code.integer(0)
        self.carried = self._load_steps(self.first)
        for (_, whole), rows in zip(self._of_each(), self.rows, strict=True):
            rows.store(zero, iter(rows.load(Sum(zero), whole)))

    def turn(self, number: Any) -> Any:
        """See :meth:`ChainCopies.turn`. All have read the operand before at the last barrier."""
        zero = self.code.integer(0)
        loaded = iter(self.carried)
        for steps in self.steps:
            steps.store(zero, loaded)
        barrier(self.code)
        self._columns = self.columns.load(*self._of_columns(number))
        self.firsts[0].fence()
        return zero

    def between(self, number: Any) -> None:
        """See :meth:`ChainCopies.between`."""
        self.columns.store(self.code.integer(0), iter(self._columns))
        barrier(self.code)
        self.carried = self._load_steps(self.code.plus(number, 1))
        self.firsts[0].fence()

    def _load_steps(self, number: Any) -> list[Any]:
        """The first product's operand of a block of steps; behind the last one, of any other.

        Without a branch: products would be moved past it, to where their sums are used.
        """
        code = self.code
        last = code.value("arith.subi", code.index, self.end, code.integer(1))
        there = code.value("arith.minsi", code.index, number, last)
        there = code.value("arith.maxsi", code.index, there, code.integer(0))
        zero = Sum(code.integer(0))
        loaded = self._with_steps(there, lambda n, whole: self.steps[n].load(zero, whole))
        return [value for values in loaded for value in values]


def chain_copies(
    code: Code, plan: ChainPlan, products: Sequence[WarpProduct], thread: Any
) -> ChainCopies:
    """The copies of a plan."""
    kind = CopiesThroughRegisters if plan.through_registers else CopiesPastRegisters
    return kind(code, plan, products, thread)
