"""The same bodies, where the second product of a block runs under the next block's other code.

The first product of a block and the second one of the block before are under way together. Weights
are computed while the unit adds up the latter, whose operand stays in registers.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from polyblocks.affine.model import For
from polyblocks.codegen.gpu.emission.code import Code
from polyblocks.codegen.gpu.matrix_emission.chains.by_groups import BoxedCopies, GroupChainEmitter
from polyblocks.codegen.gpu.matrix_emission.chains.copies import ChainCopies
from polyblocks.codegen.gpu.matrix_emission.chains.products import ChainProduct, GroupProduct
from polyblocks.mlir import ir


class OverlappedChainEmitter(GroupChainEmitter):
    """Writes such a body at the current insertion point; see :class:`GroupChainEmitter`."""

    #: How the operands come.
    _boxed: BoxedCopies
    #: The second product's sums; those of the block before may be under way.
    _sums: list[Any]
    #: Registers of its first operand, of the block before until it is done; none in the first one.
    _words: list[Any]

    def _blocks(self, copies: ChainCopies, inits: list[Any]) -> list[Any]:
        """See :meth:`ChainEmitter._blocks`; no product is under way in the first block."""
        assert isinstance(copies, BoxedCopies)
        self._boxed = copies
        code, first, end = self.code, copies.first, len(inits)
        carried = end + len(copies.carried)

        def one(masks: bool, number: Any, given: list[Any]) -> list[Any]:
            self._words = given[carried:]
            found = self._carried(copies, end, masks, number, given[:carried])
            return [*found, *self._words]

        def some() -> list[Any]:
            done = one(bool(self.borders.loops), first, inits + copies.carried)
            for part in self.borders.parts(code.plus(first, 1), copies.end):
                body = partial(one, part.masks)
                done = code.loop(part.first, part.end, code.integer(1), done, body, kept=True)
            self._words, copies.carried = done[carried:], done[end:carried]
            copies.end_blocks()
            rows = end - len(self._sums)
            self._sums = done[rows:end]
            self._issue()
            return [*done[:rows], *self._finished()]

        there = code.compare("slt", first, copies.end)
        return code.when(there, some, lambda: inits, [v.type for v in inits])

    def _block(self, number: Any, copies: ChainCopies, totals: list[Any], masks: bool) -> list[Any]:
        """See :meth:`ChainEmitter._block`; the totals lack the second product of the block."""
        self._sums = self.second.sums.packed(totals)
        return super()._block(number, copies, totals, masks)

    def _make(self, loop: For, number: int) -> None:
        """See :meth:`ChainEmitter._make`; the other product is under way behind it."""
        product = _of_group(self.firsts[number])
        sums = product.issue(None, self.stage, self._inits(loop, number))
        if self._words:
            self._issue()
        self._set_sums(loop, number, product.calls.wait(bool(self._words), sums))

    def _use(self, totals: list[Any], copies: ChainCopies) -> list[Any]:
        """See :meth:`ChainEmitter._use`; the second product is added in the next block."""
        buffer = self.plan.second.product.operands[0].load.buffer
        if self._words:
            grid = self.passed[buffer]
            wide = self._pinned(1, [_wide(self.code, v) for row in grid for v in row])
            # Assemblers move a wait up through arithmetic, but not through a loop: this one ends at
            # once, and stands behind all arithmetic that runs while the product is under way.
            self._boxed.columns_arrive()
            totals = self.second.sums.unpacked(self._finished())
            # Registers of its operand are free now.
            free, narrow = iter(self._pinned(0, wide)), grid[0][0].type
            self.passed[buffer] = [
                [self.code.value("arith.truncf", narrow, next(free)) for _ in row] for row in grid
            ]
        operand, calls = self._operand(), range(self.plan.second.calls)
        self._words = [v for call in calls for unit in operand.of_call(call) for v in unit]
        return self._before(totals)

    def _pinned(self, pending: int, values: list[Any]) -> list[Any]:
        """Values that are there when at most some groups of products are under way."""
        return _of_group(self.second).calls.wait(pending, values)

    def _issue(self) -> None:
        """Begin the second product of the block before, when its columns are there."""
        self._boxed.columns_arrive()
        second = _of_group(self.second)
        of_call = len(self._words) // self.plan.second.calls

        def rows(call: int) -> list[list[Any]]:
            return [self._words[call * of_call : (call + 1) * of_call]]

        self._sums = second.issue(rows, self._boxed.stage_of_columns, self._sums)

    def _finished(self) -> list[Any]:
        """The sums of the second product of the block before."""
        sums = self._pinned(0, self._sums)
        self._boxed.columns_are_used()
        return sums


def _wide(code: Code, value: Any) -> Any:
    """A value as a number of float32, which takes a register."""
    if not isinstance(value.owner, ir.Block) and value.owner.name == "arith.truncf":
        return value.owner.operands[0]
    return code.value("arith.extf", ir.F32Type.get(), value)


def _of_group(product: ChainProduct) -> GroupProduct:
    assert isinstance(product, GroupProduct)
    return product
