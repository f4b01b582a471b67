"""Cost of copies: of operands into panels, and of staged results.

Times are in multiply-adds of one vector, as those of tilings are.
"""

from __future__ import annotations

from polyblocks.affine.access import MAX_STEP, address, divisions
from polyblocks.affine.analysis.contractions import Operand
from polyblocks.affine.contraction.products.flat_product import FlatProduct
from polyblocks.affine.contraction.products.product import extents
from polyblocks.affine.cost.constants import (
    ASSEMBLED_NUMBER,
    COPIED_VECTOR,
    COPY_RUN,
    LONE_ELEMENT,
    SCATTERED_ELEMENT,
    TRANSPOSED_VECTOR,
)
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import Load
from polyblocks.affine.operation_cost import operations


def operand_time(product: FlatProduct, operand: Operand, width: int) -> float:
    """Mean time per element of packing an operand.

    Args:
        product: whose operand it is.
        operand: the operand.
        width: lanes of one vector.
    """
    if operand.of_rows:
        along_steps = _along(product, operand, product.step, product.steps, width)
        return min(along_steps, _along(product, operand, product.row, product.rows, width))
    if operand.natural is not None:
        return (TRANSPOSED_VECTOR + COPIED_VECTOR) / width
    time = _along(product, operand, product.column, product.columns, width)
    if (
        time != SCATTERED_ELEMENT
        or operand.in_place is None
        or elements_apart(operand, product.step) != 1
    ):
        return time
    whole = (product.column.extent // width) * (product.step.extent // width) * width * width
    share = whole / (product.column.extent * product.step.extent)
    return TRANSPOSED_VECTOR / width * share + LONE_ELEMENT * (1 - share)


def along_rows(product: FlatProduct, operand: Operand, width: int) -> bool:
    """Whether a panel of rows is copied along these: they are neighbours, and steps are not.

    Then the rows of a step lie one after the other, and not the steps of a row.
    """
    if not operand.of_rows:
        return False
    along_steps = _along(product, operand, product.step, product.steps, width)
    return _along(product, operand, product.row, product.rows, width) < along_steps


def _along(
    product: FlatProduct, operand: Operand, side: Var, loops: list[Var], width: int
) -> float:
    """Time of an element that is copied along the loops of one variable."""
    # The words of a unit are put together of what is loaded.
    loads = 1
    if product.unit is not None:
        loads = max(1, sum(isinstance(n, Load) for n in operand.nodes))
    scattered = SCATTERED_ELEMENT if product.unit is None else ASSEMBLED_NUMBER * loads
    apart = elements_apart(operand, side)
    if apart is None or apart > MAX_STEP:
        return scattered
    # Vectors end where a loop does; those with gaps load several.
    counts = copy_extents(operand, side, loops)
    run = side.extent if operand.in_place is not None else _run(operand, side, counts, apart)
    begun = COPY_RUN / run if run < side.extent else 0.0
    return min(scattered, max(loads, apart) * _in_vectors(run, width)) + begun


def copy_extents(operand: Operand, side: Var, loops: list[Var]) -> list[int]:
    """Iterations of the loops that count one variable of a copy, the fastest one last.

    They are the loops of the product, cut where a place in memory is made of a quotient of the
    variable: vectors end there.

    Args:
        operand: what is copied.
        side: the variable.
        loops: of the product, which count the variable.
    """
    places = [address(n.buffer, n.index) for n in operand.nodes if isinstance(n, Load)]
    cuts = sorted({d for p in places for e, d in divisions(p) if e == Expr.of(side)})
    counts: list[int] = []
    inside = 1
    for extent in reversed(extents(loops)):
        whole = inside * extent
        for cut in cuts:
            if inside < cut < whole and cut % inside == 0 and whole % cut == 0:
                counts.insert(0, cut // inside)
                inside = cut
        counts.insert(0, whole // inside)
        inside = whole
    return counts


def _run(operand: Operand, side: Var, counts: list[int], apart: int) -> int:
    """Values of a variable, in the loops that count them, that move an operand evenly."""
    run = counts[-1]
    for extent in reversed(counts[:-1]):
        if any(step != Expr(apart * run) for step in _steps(operand, side, run)):
            break
        run *= extent
    return run


def is_scattered(operand: Operand, var: Var) -> bool:
    """Whether vectors along a variable have to be put together of single elements."""
    apart = elements_apart(operand, var)
    return apart is None or apart > MAX_STEP


def result_time(product: FlatProduct, width: int) -> float:
    """Time of a result: the epilogue and staging."""
    work = operations(product.after)
    if not product.waits:
        return work / width if product.in_order else SCATTERED_ELEMENT + work
    if product.in_order:
        return _in_vectors(product.columns[-1].extent, width) * (1 + work / COPIED_VECTOR)
    if product.crossed:
        vectors = _in_vectors(product.rows[-1].extent, width) * (1 + work / COPIED_VECTOR)
        # They are stored as they come, transposed, and copied to where they belong.
        return (COPIED_VECTOR + TRANSPOSED_VECTOR) / width + vectors
    return SCATTERED_ELEMENT + work


def _in_vectors(extent: int, width: int) -> float:
    """Time of an element of a copied loop: vectors end where it does."""
    return COPIED_VECTOR * -(-extent // width) / extent


def elements_apart(operand: Operand, var: Var) -> int | None:
    """Elements between those of the first two values of a variable, at most; None if not known."""
    if var.extent == 1:
        return 0
    steps = _steps(operand, var, 1)
    if not all(step.is_constant and step.const >= 0 for step in steps):
        return None
    return max((step.const for step in steps), default=0)


def _steps(operand: Operand, var: Var, value: int) -> list[Expr]:
    """By how much each load moves from the first value of a variable to another one."""
    places = [address(n.buffer, n.index) for n in operand.nodes if isinstance(n, Load)]
    return [p.substitute({var: Expr(value)}) - p.substitute({var: Expr(0)}) for p in places]
