"""What copies take: of operands into panels, and of results that wait.

Times are in multiply-adds of one vector, as those of tilings are.
"""

from __future__ import annotations

from polyblocks.affine.access import address
from polyblocks.affine.contraction.product import Operand, Product
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import Load
from polyblocks.affine.vectors.interleaves import MAX_STEP

#: A copied vector: in order, or transposed in registers.
COPIED, TRANSPOSED = 2.0, 6.0
#: A copied element that has none of its neighbours beside it.
SCATTERED = 2.0


def operand_time(product: Product, operand: Operand, width: int) -> float:
    """What an element of an operand takes on average, if all of them are copied to a panel.

    Args:
        product: whose operand it is.
        operand: the operand.
        width: lanes of one vector.
    """
    side, extents = product.step, product.steps
    if not operand.of_rows:
        side, extents = product.column, product.columns
    if operand.load is not None:
        extents = [side.extent]
    apart = _apart(operand, side)
    if apart is not None and apart <= MAX_STEP:
        # Vectors end where a loop does; of those with gaps so many are loaded.
        return COPIED * max(1, apart) * -(-extents[-1] // width) / extents[-1]
    if operand.of_rows or operand.load is None or _apart(operand, product.step) != 1:
        return SCATTERED
    whole = (product.column.extent // width) * (product.step.extent // width) * width * width
    share = whole / (product.column.extent * product.step.extent)
    return TRANSPOSED / width * share + SCATTERED * (1 - share)


def result_time(product: Product, width: int) -> float:
    """What a result takes that waits for being stored; 0 if it does not."""
    if not product.waits:
        return 0.0
    if product.in_order:
        return COPIED * -(-product.columns[-1] // width) / product.columns[-1]
    return SCATTERED


def _apart(operand: Operand, var: Var) -> int | None:
    """Elements between those of the first two values of a variable, at most; None if not known."""
    places = [address(n.buffer, n.index) for n in operand.nodes if isinstance(n, Load)]
    if var.extent == 1:
        return 0
    steps = [p.substitute({var: Expr(1)}) - p.substitute({var: Expr(0)}) for p in places]
    if not all(step.is_constant and step.const >= 0 for step in steps):
        return None
    return max((step.const for step in steps), default=0)
