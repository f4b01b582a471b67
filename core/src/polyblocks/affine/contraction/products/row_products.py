"""Products of a row and a matrix as contractions: a row is what others have several of.

To most of the compiler a product of a matrix and a vector is no contraction: nothing is read twice,
so that tiles are not worth while. To a chain of products it is one of a single row.
"""

from __future__ import annotations

from polyblocks.affine.analysis.access_order import fastest_last
from polyblocks.affine.analysis.contractions import Contraction, Operand, ReductionLoops
from polyblocks.affine.analysis.facts import facts_of
from polyblocks.affine.analysis.parallel import is_parallel
from polyblocks.affine.analysis.reductions import ReductionNest
from polyblocks.affine.expr import Var
from polyblocks.affine.model import Load, Nest, Node, Pure, Store

#: The variable of the only row. It has one value, and so it is in no expression.
ROW = Var(1, "r")


def product_of(nest: Nest) -> Contraction | None:
    """The contraction that a nest is, or that of a single row; None if it is neither."""
    return facts_of(nest).contraction or row_product(nest.body)


def row_product(nodes: list[Node]) -> Contraction | None:
    """The parts of a product of a row and a matrix, for each value of other variables.

    The only variable of the columns is the one that moves the matrix, and not the row.
    """
    shape = ReductionNest.of_nodes(nodes)
    if shape is None or any(loop.bounded for loop in (*shape.parallel, *shape.reductions)):
        return None
    if not all(isinstance(n, (Pure, Load)) for n in (*shape.before, *shape.inner)):
        return None
    loads = [n for n in shape.inner if isinstance(n, Load)]
    steps = [loop.var for loop in shape.reductions]
    moved = [set(load.variables()) for load in loads]
    if len(loads) != 2 or not all(set(steps) <= each for each in moved):
        return None
    row, matrix = sorted(range(2), key=lambda n: len(moved[n]))
    (column, *others) = moved[matrix] - moved[row] or [None]
    outer = [loop.var for loop in shape.parallel]
    if column not in outer or others or not moved[row] <= moved[matrix]:
        return None
    stored = {n.buffer.base for n in shape.after if isinstance(n, Store)}
    if any(load.buffer.base in stored for load in loads):
        return None
    combiners = shape.combiners(any_order=True)
    if combiners is None or not all(is_parallel(loop, nodes) for loop in shape.parallel):
        return None
    batch = [v for v in fastest_last(outer, [*shape.inner, *shape.after]) if v is not column]
    return Contraction(
        *(batch, [ROW], [column]),
        reduction=ReductionLoops(shape.reductions, shape.inner),
        before=shape.before,
        after=shape.after,
        operands=[Operand(loads[n].result, [loads[n]], of_rows=n == row) for n in (row, matrix)],
        combiners=combiners,
    )
