"""Whether an access goes through memory as the iterations of collapsed loops are counted."""

from __future__ import annotations

from polyblocks.affine.access import begins_and_ends_with_memory, strides
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import AffineAccess


def is_contiguous(node: AffineAccess, order: list[Var]) -> bool:
    """Whether iteration ``n`` of the loops touches the element ``n`` times a stride further on.

    Args:
        node: the access; no if the buffer is the kernel's own or a part of another one, whose
            elements need not follow each other.
        order: the variables of the loops, the one that changes fastest last.
    """
    if (
        len(order) < 2
        or node.buffer.kind == "local"
        or not begins_and_ends_with_memory(node.buffer)
    ):
        return False
    steps = dict.fromkeys(order, 0)
    for expr, stride in zip(node.index, strides(node.buffer), strict=True):
        for atom, factor in expr.terms:
            if isinstance(atom, Var):
                if atom in steps:
                    steps[atom] += factor * stride
            elif steps.keys() & set(atom.dividend.variables()):
                return False
    step = steps[order[-1]]
    for var in reversed(order):
        if steps[var] != step:
            return False
        step *= var.extent
    return steps[order[-1]] != 0


def offset(node: AffineAccess, order: list[Var]) -> Expr:
    """The element of an access that is in step, the last variable standing for the iteration."""
    total = Expr(0)
    for expr, stride in zip(node.index, strides(node.buffer), strict=True):
        total = total + expr * stride
    return total.substitute({v: Expr(0) for v in order[:-1]})
