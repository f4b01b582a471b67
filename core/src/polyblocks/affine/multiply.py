"""Multiplications by matrix units: of single words, and of tiles.

A product of tiles is three loops in the model, so that every analysis of loops and accesses holds
for it; in MLIR it is one ``polyblocks.multiply``, which a target's lowering takes as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from polyblocks.affine.expr import Var
from polyblocks.affine.model import For, Load, Op, Store, Value
from polyblocks.target import DOT_PREFIX


class Multiply(Op):
    """A matrix unit adds the products of the numbers in two words to an accumulator.

    Made by :meth:`polyblocks.affine.ops.Ops.multiply`. One of a unit of vectors stands among
    scalars, and is a lane of what the unit does. One of a unit of tiles stands in the loops over
    rows, columns and steps that the unit goes through by itself: see ``For.unit``.
    """

    __slots__ = ()

    @property
    def unit(self) -> str:
        """The unit's name."""
        return str(self.attributes["intrin"].value).removeprefix(DOT_PREFIX)

    @property
    def accumulator(self) -> Value:
        """The sum so far."""
        return self.operands[0]

    @property
    def a(self) -> Value:
        """The word of a row."""
        return self.operands[1]

    @property
    def b(self) -> Value:
        """The word of a column."""
        return self.operands[2]


class UnitTileError(Exception):
    """Loops of a matrix unit are no product of tiles."""


@dataclass(frozen=True)
class UnitTile:
    """``accumulator[row, column] = sum over steps of a[row, step] x b[step, column]``.

    ::

        for row { for column {
          zero = constant
          total = for step carries sum = zero { x = load a; y = load b; yield multiply(sum, x, y) }
          store total, accumulator } }

    Attributes:
        row, column, step: variables of the three loops, which begin at 0 and end at a constant.
        accumulator: the store of a sum.
        a, b: loads of a row's word, and of a column's.
        zero: the constant that sums start with.
        multiply: what the unit does of one step.
    """

    row: Var
    column: Var
    step: Var
    accumulator: Store
    a: Load
    b: Load
    zero: Op
    multiply: Multiply

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, columns and steps; steps in words."""
        return self.row.extent, self.column.extent, self.step.extent

    @classmethod
    def of(cls, loop: For) -> UnitTile:
        """Read the loops that are marked with a unit.

        Raises:
            UnitTileError: they have another form.
        """
        rows = loop
        (columns,) = _nodes(rows.body, For)
        zero, steps, store = _nodes(columns.body, Op, For, Store)
        first, second, multiply = _nodes(steps.body, Load, Load, Multiply)
        a, b = (first, second) if first.result is multiply.a else (second, first)
        if any(each.bounded or each.level or each.simd for each in (rows, columns, steps)):
            raise UnitTileError("expected loops from 0 to constants")
        if (rows.inits, columns.inits, steps.inits) != ([], [], zero.results):
            raise UnitTileError("expected a sum from a constant on, carried over steps alone")
        if zero.name != "arith.constant":
            raise UnitTileError(f"expected a sum from a constant on, got {zero.name}")
        # Of a sum whose order is free, either zero.
        if (start := zero.attributes["value"]).value != 0:
            raise UnitTileError(f"expected a sum from 0 on, got {start}")
        if multiply.operands != [*steps.arguments, a.result, b.result]:
            raise UnitTileError("expected a multiplication of what is loaded, added to the sum")
        if steps.yields != multiply.results or store.value is not steps.results[0]:
            raise UnitTileError("expected that the sum is carried and stored")
        if multiply.unit != loop.unit or a.where or b.where:
            raise UnitTileError(f"expected operands of the unit {loop.unit} in memory")
        return cls(rows.var, columns.var, steps.var, store, a, b, zero, multiply)

    def loops(self) -> For:
        """The loops, marked with the unit."""
        (init,), (after,), total = self.zero.results, self.multiply.results, self.accumulator.value
        steps = For(
            self.step,
            [self.a, self.b, self.multiply],
            inits=[init],
            arguments=[self.multiply.accumulator],
            results=[total],
            yields=[after],
        )
        columns = For(self.column, [self.zero, steps, self.accumulator])
        return For(self.row, [columns], unit=self.multiply.unit)


@dataclass(frozen=True)
class UnitSteps:
    """``sum = sum + a[step] x b[step]`` for steps that the units of a block's warps take together.

    ::

        for step carries sum { x = load a; y = load b; ...; yield sum + x y }

    It is what each element of a nest does; its threads do it for all of them. Both operands are in
    registers, as :class:`polyblocks.affine.buffers.copies.BoxCopy` left them there; or both in the
    shared memory that a :class:`polyblocks.target.GroupUnit` reads.

    Attributes:
        loop: over the steps, marked with the unit's name.
        loads: of the operands.
    """

    loop: For
    loads: tuple[Load, Load]

    @classmethod
    def of(cls, loop: For) -> UnitSteps:
        """Read a loop that is marked with a unit, and is no :class:`UnitTile`.

        Raises:
            UnitTileError: it has another form.
        """
        loads = [n for n in loop.body if isinstance(n, Load)]
        if len(loop.inits) != 1 or not all(isinstance(n, (Load, Op)) for n in loop.body):
            raise UnitTileError("expected one sum that loads and operations of a step add to")
        spaces = {load.buffer.space for load in loads}
        if len(loads) != 2 or spaces not in ({"registers"}, {"shared"}):
            raise UnitTileError("expected two operands in registers, or in shared memory")
        return cls(loop, (loads[0], loads[1]))


def is_tile(loop: For) -> bool:
    """Whether a loop of a unit is one of a :class:`UnitTile`, not of :class:`UnitSteps`."""
    return not loop.inits


def _nodes(nodes: list[Any], *classes: type) -> list[Any]:
    """The nodes, if these are of such classes one by one."""
    if len(nodes) != len(classes) or not all(map(isinstance, nodes, classes)):
        expected = " and ".join(c.__name__ for c in classes)
        found = ", ".join(type(n).__name__ for n in nodes)
        raise UnitTileError(f"expected a body of {expected}, got {found}")
    return nodes
