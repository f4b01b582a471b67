"""Contractions whose steps a matrix unit takes several at a time.

A unit adds to each lane of an accumulator products of narrow numbers, which lie side by side in
words of 32 bits: those of one word, or those of as many words as a row of its tiles has. A
contraction that adds such products up becomes one with as many fewer steps as a word has numbers,
whose operands are words. Only what a step computes is asked: a sum, of products, of numbers of the
unit's types that are extended to that of its accumulator.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from polyblocks.affine.access import address
from polyblocks.affine.analysis.contractions import Contraction, ReductionLoops
from polyblocks.affine.analysis.reductions import in_any_order
from polyblocks.affine.contraction.products.sum_of_products import (
    Factor,
    SumOfProducts,
    sum_of_products,
)
from polyblocks.affine.element import ARRAY_DTYPES, dtype_of
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.flat_views import FlatViews
from polyblocks.affine.model import Buffer, For, Load, Node, Value, clone
from polyblocks.affine.ops import Integers, Ops, integer, is_constant
from polyblocks.target import WORD, MatrixUnit, TargetDescription, TileUnit, VectorDot


@dataclass(frozen=True)
class Grouped:
    """A contraction in steps of a unit.

    Attributes:
        contraction: it takes ``k`` of the original's steps at a time.
        unit: the unit, by which times are predicted.
        offset: a word that was added to all of the rows' words, whose products are subtracted
            again; None for nothing.
    """

    contraction: Contraction
    unit: MatrixUnit
    offset: int | None


def in_groups(
    contraction: Contraction, views: FlatViews, target: TargetDescription
) -> list[Grouped]:
    """The ways to compute a contraction with the best units of a target that can.

    Args:
        contraction: one whose reduction has loops.
        views: views of the program's buffers.
        target: the chip.

    Returns:
        One for each side that can be the rows, of units of tiles and of units of a single row; none
        if no unit computes such steps.
    """
    units = target.matrix_units
    if not units:
        return []
    terms = sum_of_products(contraction)
    # A unit adds in an order of its own.
    if terms is None or in_any_order(contraction.combiners) is None:
        return []
    tiles = _by_the_best([u for u in units if isinstance(u, TileUnit)], terms, contraction)
    lanes = _by_the_best([u for u in units if isinstance(u, VectorDot)], terms, contraction)
    return [grouping.grouped(contraction, views) for grouping in (*tiles, *lanes)]


def _by_the_best(
    units: list[MatrixUnit], terms: SumOfProducts, contraction: Contraction
) -> list[_Grouping]:
    """Groupings for the first unit that takes the numbers as they are, or at all."""
    sides = (contraction.rows, contraction.columns)
    for flipped in (False, True):
        for unit in units:
            found = [
                grouping
                for rows, columns in (sides, sides[::-1])
                if (grouping := _Grouping.of(unit, terms, contraction, rows, columns, flipped))
            ]
            if found:
                return found
    return []


@dataclass(frozen=True)
class _Grouping:
    """How factors become operands of a unit.

    Attributes:
        unit: which.
        rows, columns: the variables of both sides.
        pairs: the factors of rows and of columns, for each product of a step.
        rows_first: whether the rows' words are the first operand.
        flipped: whether the rows' numbers have another sign than the unit takes.
    """

    unit: MatrixUnit
    rows: list[Var]
    columns: list[Var]
    pairs: list[tuple[Factor, Factor]]
    rows_first: bool
    flipped: bool

    @classmethod
    def of(
        cls,
        unit: MatrixUnit,
        terms: SumOfProducts,
        contraction: Contraction,
        rows: list[Var],
        columns: list[Var],
        flipped: bool,
    ) -> _Grouping | None:
        """None if the unit does not compute these terms, with the rows' signs as asked for."""
        if ARRAY_DTYPES[unit.accumulator] != terms.accumulator:
            return None
        # In tiles nothing is added up beside the products of one pair.
        in_tiles = isinstance(unit, TileUnit)
        if in_tiles and (flipped or len(terms.pairs) > 1):
            return None
        pairs = []
        for first, second in terms.pairs:
            if first.moved_by(columns):
                first, second = second, first
            if first.moved_by(columns) or second.moved_by(rows):
                return None
            pairs.append((first, second))
        types = {(a.dtype, b.dtype) for a, b in pairs}
        if len(types) != 1:
            return None
        ((of_rows, of_columns),) = types
        for rows_first in (True,) if in_tiles else (True, False):
            wanted, others = unit.both if rows_first else unit.both[::-1]
            same = (of_rows == wanted) if not flipped else _flip_signedness(of_rows) == wanted
            if same and of_columns == others:
                return cls(unit, rows, columns, pairs, rows_first, flipped)
        return None

    def grouped(self, contraction: Contraction, views: FlatViews) -> Grouped:
        """The contraction in groups of steps."""
        reduction = contraction.reduction
        var = self._grouped_var(reduction, views)
        group = Var(-(-var.extent // self.unit.in_a_word), var.name)
        last = reduction.loops[-1]
        (value,) = last.arguments
        body: list[Node] = []
        ops = Ops(body)
        for of_rows, of_columns in self.pairs:
            row = self._word(of_rows, var, group, views, ops)
            if self.flipped:
                row = ops.op("arith.xori", [row, ops.constant(_SIGNS, row.type)])
            column = self._word(of_columns, var, group, views, ops)
            words = (row, column) if self.rows_first else (column, row)
            value = ops.multiply(self.unit.name, value, *words)
        loops: list[For] = []
        for loop in reversed(reduction.loops):
            inside: list[Node] = [loops[0]] if loops else body
            yields = loop.yields if loops else [value]
            counted = group if loop.var is var else loop.var
            loops.insert(0, For(counted, inside, loop.inits, loop.arguments, loop.results, yields))
        new = replace(
            contraction,
            rows=self.rows,
            columns=self.columns,
            reduction=ReductionLoops(loops, body),
            operands=[],
        )
        return Grouped(new, self.unit, _SIGNS if self.flipped else None)

    def _grouped_var(self, reduction: ReductionLoops, views: FlatViews) -> Var:
        """The variable of the steps that are taken together.

        There should be little to fill up with zeros, and neighbours should lie side by side.
        """
        count = self.unit.in_a_word

        def badness(var: Var) -> tuple[float, int]:
            filled = -(-var.extent // count) * count / var.extent
            factors = [f for pair in self.pairs for f in pair]
            return filled, -sum(_words(f, var, count, views) is not None for f in factors)

        return min(reversed(reduction.order), key=badness)

    def _word(self, factor: Factor, var: Var, group: Var, views: FlatViews, ops: Ops) -> Value:
        """The word with a factor of each of a group's steps."""
        count = self.unit.in_a_word
        i32 = integer(WORD)
        words = _words(factor, var, count, views)
        if words is not None:
            view, place = words
            word = Value(i32)
            place = place.substitute({var: Expr.of(group) * count}) // count
            ops.out.append(Load(word, view, (place,)))
            return word
        bits = WORD // count
        whole: Value | None = None
        for number, (place, there) in enumerate(_places(var, group, count)):
            values: dict[Value, Value] = {}
            ops.out += clone(factor.code, values, {var: place})
            part = values[factor.value]
            if not dtype_of(part.type).is_whole:
                part = ops.op("arith.bitcast", [part], integer(bits))
            if there is not None:
                nothing, rest = ops.constant(0, part.type), ops.index(there)
                inside = ops.compare(Integers.EQUAL, rest, ops.constant(0, rest.type))
                part = ops.select(inside, part, nothing)
            part = ops.op("arith.extui", [part], i32)
            if number:
                part = ops.op("arith.shli", [part, ops.constant(bits * number, i32)])
            whole = part if whole is None else ops.op("arith.ori", [whole, part])
        assert whole is not None
        return whole


#: Flips the signs of four bytes, as a number of 32 bits.
_SIGNS = 0x80808080 - (1 << WORD)


def _flip_signedness(dtype: str) -> str:
    """The integer type of the same width and other signedness; empty for other types."""
    return {"int8": "uint8", "uint8": "int8"}.get(dtype, "")


def _places(var: Var, group: Var, count: int) -> Iterator[tuple[Expr, Expr | None]]:
    """Where the steps of a group are, and what is zero where there is such a step, if not always.

    Missing elements of the last group are read from the last step, so that nothing outside of
    memory is touched.
    """
    rest = var.extent % count
    first = Expr.of(group) * count
    for number in range(count):
        if not rest or number < rest:
            yield first + number, None
        elif group.extent > 1:
            last = Expr.of(group) // (group.extent - 1)
            yield first + number - last * (number - rest + 1), last


def _words(factor: Factor, var: Var, count: int, views: FlatViews) -> tuple[Buffer, Expr] | None:
    """Words of memory that groups of steps are, and the place of a number; None if they are none.

    They are where steps are neighbours, and all else moves by whole words.
    """
    code = [n for n in factor.code if not is_constant(n)]
    if len(code) != 1 or not isinstance(code[0], Load) or var.extent % count:
        return None
    (load,) = code
    assert isinstance(load, Load)
    place = address(load.buffer, load.index)
    if place.coefficient(var) != 1 or place.const % count:
        return None
    if any(factor % count for atom, factor in place.terms if atom is not var):
        return None
    view = views.of_words(load.buffer, count, integer(WORD))
    return None if view is None else (view, place)
