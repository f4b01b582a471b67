"""Blocks of steps at the border of masks: which of a tile's blocks they are, and their elements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from polyblocks.affine.expr import Expr
from polyblocks.affine.gpu.plans.chained import grows_with, is_at_border
from polyblocks.affine.gpu.plans.chains import ChainPlan
from polyblocks.affine.model import Buffer, For, Store
from polyblocks.codegen.gpu.emission.code import Code
from polyblocks.codegen.gpu.matrix_emission.chains.products import ChainProduct
from polyblocks.mlir import ir

#: Elements of a thread, rows by columns.
Grid = list[list[Any]]


@dataclass(frozen=True)
class Part:
    """Blocks of steps that follow each other.

    Attributes:
        first, end: the first one, and the one behind the last one.
        masks: whether masks may hide elements of them.
    """

    first: Any
    end: Any
    masks: bool


class Borders:
    """Finds the blocks of a tile that masks cut, and masks elements of the thread.

    Args:
        code: of the kernel.
        plan: of the chain.
        product: the first one, whose elements are masked.

    Attributes:
        apart: whether blocks that masks cut have a loop of their own.
    """

    def __init__(self, code: Code, plan: ChainPlan, product: ChainProduct) -> None:
        self.code, self.plan, self.product = code, plan, product
        self.block = plan.parts.block
        self.loops = [n for n in plan.parts.statements if isinstance(n, For) and is_at_border(n)]
        self.apart = False

    def parts(self, first: Any, end: Any) -> list[Part]:
        """All blocks of a tile; where those that masks cut are at one end, these are apart.

        Whole blocks have no tests then, and what follows a product need not wait for its end.
        """
        if not self.loops:
            return [Part(first, end, False)]
        (row, *others) = self.plan.parts.first.rows
        ends = {_begins(loop) for loop in self.loops}
        few = self.plan.parts.blocks.var.extent * self.block <= self.plan.tile[0]
        if others or few or len(ends) > 1 or not all(grows_with(_at(n), row) for n in self.loops):
            return [Part(first, end, True)]
        self.apart = True
        if _begins(self.loops[0]):
            middle = self._within(first, end, "arith.minsi", 0, 0)
            return [Part(first, middle, False), Part(middle, end, True)]
        middle = self._within(first, end, "arith.maxsi", self.plan.tile[0] - 1, self.block - 1)
        return [Part(first, middle, True), Part(middle, end, False)]

    def _within(self, first: Any, end: Any, joined: str, row: int, more: int) -> Any:
        """The first block of steps behind the limits of a row of the tile."""
        code, nodes, found = self.code, self.product.tile.nodes, None
        (variable,) = self.plan.parts.first.rows
        last = code.integer(variable.extent - 1)
        at = code.value("arith.minui", code.index, code.plus(self.product.tile.first[0], row), last)
        for loop in self.loops:
            nodes.variables[variable] = at
            limit = code.value("arith.maxsi", code.index, nodes.expr(_at(loop)), code.integer(0))
            number = code.quotient(code.plus(limit, more), self.block)
            found = number if found is None else code.value(joined, code.index, found, number)
        found = code.value("arith.minsi", code.index, found, end)
        return code.value("arith.maxsi", code.index, found, first)

    def mask(self, loop: For, passed: dict[Buffer, Grid]) -> None:
        """Another value for the elements of a loop over the first or last steps of a block."""
        code, tile, (store,) = self.code, self.product.tile, _stores(loop)
        tile.run([n for n in loop.body if n is not store], tile.found)
        old, begins, at = passed[store.buffer], _begins(loop), _at(loop)
        first, zero = tile.first[1], code.integer(0)
        narrow = ir.IntegerType.get_signless(32)

        def limit(row: int) -> Any:
            """The number in the block of the first step from ``at`` on."""
            tile.move(row, -1)
            number = code.value("arith.subi", code.index, tile.nodes.expr(at), first)
            return code.value("arith.maxsi", code.index, zero, number)

        def body() -> list[Any]:
            # One comparison for each element, of numbers that take one register.
            places = [code.value("arith.index_cast", narrow, p) for p in self.product.places[1]]
            found = []
            for i, row in enumerate(old):
                end = code.value("arith.minsi", code.index, limit(i), code.integer(self.block))
                end = code.value("arith.index_cast", narrow, end)
                for j, (place, value) in enumerate(zip(places, row, strict=True)):
                    new = tile.of(store.value, i, j)
                    both = (value, new) if begins else (new, value)
                    before = code.compare("slt", place, end)
                    found.append(code.value("arith.select", value.type, before, *both))
            return found

        (row, *others), there = self.plan.parts.first.rows, None
        if not self.apart and not others and grows_with(at, row):
            # Whether some row of the thread has such elements: in most blocks none has.
            some = limit(0 if begins else len(old) - 1)
            ends = (some, code.integer(self.block)) if begins else (zero, some)
            there = code.compare("slt", *ends)
        flat = [v for row in old for v in row]
        found = code.when(there, body, lambda: flat, [v.type for v in flat])
        width = len(old[0])
        passed[store.buffer] = [found[n : n + width] for n in range(0, len(found), width)]


def _begins(loop: For) -> bool:
    """Whether a loop over the border of a block goes from a limit on, and not up to one."""
    return len(loop.lower) > 1


def _at(loop: For) -> Expr:
    """That limit."""
    (at,) = loop.lower[1:] if _begins(loop) else loop.upper[1:]
    return at


def _stores(loop: For) -> list[Store]:
    return [n for n in loop.body if isinstance(n, Store)]
