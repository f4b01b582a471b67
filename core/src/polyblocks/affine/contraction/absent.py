"""Elements that are not there: those of a margin that an operation put around its own input.

A convolution need not compute products with its own padding: frameworks leave them out. A program
that pads an image first and then convolves it gets all products, also those of infinite weights,
which are no zeros.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from polyblocks.affine.analysis.boxes import Box
from polyblocks.affine.analysis.reductions import adds_products_of
from polyblocks.affine.contraction.products.flat_product import FlatProduct, only_load
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import Buffer, Load
from polyblocks.affine.padding.margins import Margin

#: Bounds of a loop: it starts at the largest of the first ones, and ends before the least of the
#: others.
Bounds = tuple[tuple[Expr, ...], tuple[Expr, ...]]


@dataclass(frozen=True)
class Absent:
    """Rows (M) that need no multiplication.

    Attributes:
        load: of an element of a row, of the product's variables.
        inside: the box of elements that are there.
    """

    load: Load
    inside: Box

    def bounds(
        self, first: Mapping[Var, Expr], last: Mapping[Var, Expr], steps: list[Var]
    ) -> dict[Var, Bounds]:
        """Bounds of K loops; outside of them all rows of a tile are absent.

        Args:
            first, last: values of the product's variables in the first and in the last row.
            steps: the loops' variables.
        """
        found: dict[Var, Bounds] = {}
        for expr, extent, (low, high) in zip(
            self.load.index, self.load.buffer.shape, self.inside, strict=True
        ):
            place = expr.substitute(first)
            moving = [v for v in steps if place.coefficient(v) != 0]
            if (low, high) == (0, extent) or len(moving) != 1:
                continue
            (var,) = moving
            factor = place.coefficient(var)
            if factor is None or place != expr.substitute(last):
                continue
            rest = place - Expr(0, {var: factor})
            # The least steps at which the place is inside, and behind it.
            if factor > 0:
                begin, end = (((rest - edge) // factor) * -1 for edge in (low, high))
            else:
                begin, end = ((rest - edge) // -factor + 1 for edge in (high, low))
            lower, upper = found.get(var, ((), ()))
            if begin.range()[1] > 0:
                lower = (*lower, begin)
            if end.range()[0] < var.extent:
                upper = (*upper, end)
            found[var] = lower, upper
        return found

    def rows_present(
        self, places: Sequence[Mapping[Var, Expr]], steps: list[Var]
    ) -> tuple[Var, tuple[tuple[int, ...], ...]] | None:
        """A K loop in which single rows are absent, or None.

        Args:
            places: for each row, values of the product's variables.
            steps: the loops' variables.

        Returns:
            The variable, and the numbers of the rows that are there for each of its values.
        """
        for expr, (low, high) in zip(self.load.index, self.inside, strict=True):
            rows = [expr.substitute(place) for place in places]
            for var in steps:
                factor = rows[0].coefficient(var)
                if not factor:
                    continue
                begins = [e - Expr(0, {var: factor}) for e in rows]
                if not all(e.is_constant for e in begins):
                    continue
                present = tuple(
                    tuple(
                        row
                        for row, begin in enumerate(begins)
                        if low <= begin.const + factor * value < high
                    )
                    for value in range(var.extent)
                )
                if any(len(p) < len(rows) for p in present):
                    return var, present
        return None


def absent_of(product: FlatProduct, margins: Mapping[Buffer, Margin]) -> Absent | None:
    """The absent products of a contraction's rows; None if there are none or it is unknown.

    It is if a step multiplies an element of a row once and adds that up, and if the zeros are
    padding of the operation that reads them.
    """
    rows = [o for o in product.operands if o.of_rows]
    # Without combiners arithmetic must stay as written.
    if product.windows is None or len(rows) != 1 or product.combiners is None:
        return None
    (operand,) = rows
    if not adds_products_of(operand.value, product.body, product.arguments, product.yields):
        return None
    load = only_load(operand.nodes, operand.value)
    margin = margins.get(load.buffer) if load is not None else None
    if load is None or margin is None or not margin.is_own(load):
        return None
    return Absent(load, margin.inside)
