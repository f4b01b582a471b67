"""Questions about single accesses: what they cover, and whether iterations are told apart."""

from __future__ import annotations

from collections.abc import Sequence, Set

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import Buffer, For, Node


def covers(buffer: Buffer, index: Sequence[Expr], loops: Sequence[Var]) -> bool:
    """Whether ``index`` over all of ``loops`` touches each element of the buffer exactly once.

    True only for what is easily seen: every dimension is a loop variable of its own with just the
    extent of the dimension (or constant 0 in a dimension of one), and every loop is used.
    """
    seen: set[Var] = set()
    for expr, extent in zip(index, buffer.shape, strict=True):
        if extent == 1 and expr == Expr(0):
            continue
        if len(expr.terms) != 1 or expr.const != 0:
            return False
        ((atom, coefficient),) = expr.terms
        if not isinstance(atom, Var) or coefficient != 1 or atom.extent != extent or atom in seen:
            return False
        if atom.value is not None:
            # A loop around the nest: one of its values at a time.
            return False
        seen.add(atom)
    return all(v in seen or v.extent == 1 for v in loops)


def digits(
    buffer: Buffer, index: Sequence[Expr], loops: Sequence[Var]
) -> dict[Var, tuple[int, int]] | None:
    """The dimension and the factor of every loop, if all of them count through the buffer.

    ``index`` over all of ``loops`` touches each element exactly once: in every dimension the
    loops there are the digits of a number with mixed bases, as ``3 * i + j`` with ``j < 3``.

    Returns:
        None if they do not count so.
    """
    found: dict[Var, tuple[int, int]] = {}
    for dimension, (expr, extent) in enumerate(zip(index, buffer.shape, strict=True)):
        base = 1
        for atom, factor in sorted(expr.terms, key=lambda term: term[1]):
            if not isinstance(atom, Var) or factor != base or atom in found:
                return None
            if atom.value is not None:
                # As in `covers`.
                return None
            found[atom] = (dimension, factor)
            base *= atom.extent
        if expr.const != 0 or base != extent:
            return None
    return found if all(v in found or v.extent == 1 for v in loops) else None


def distinguishes(index: Sequence[Expr], var: Var) -> bool:
    """Whether different values of ``var`` always give different indices.

    Sufficient: in one dimension ``var`` has a factor larger than all that the rest can vary.
    """
    for expr in index:
        factor = expr.coefficient(var)
        if not factor:
            continue
        rest = expr - Expr(0, {var: factor})
        low, high = rest.range()
        if abs(factor) > high - low:
            return True
    return False


def same_for(
    index_a: Sequence[Expr], index_b: Sequence[Expr], var: Var, inner: Set[Var] | None = None
) -> bool:
    """Whether both accesses touch a common element only in the same iteration of ``var``.

    Sufficient: some dimension tells iterations of ``var`` apart in both, by the same factor, and
    the two differ there by less than the factor in whatever else varies: the variables ``inner``
    of loops inside, all others being the same for both; None stands for all variables.
    """
    for a, b in zip(index_a, index_b, strict=True):
        factor = a.coefficient(var)
        if not factor or b.coefficient(var) != factor:
            continue
        fixed_a, moving_a = _split(a - Expr(0, {var: factor}), inner)
        fixed_b, moving_b = _split(b - Expr(0, {var: factor}), inner)
        low, high = (fixed_a - fixed_b).range()
        low_a, high_a = moving_a.range()
        low_b, high_b = moving_b.range()
        if max(high + high_a - low_b, -(low + low_a - high_b)) < abs(factor):
            return True
    return False


def _split(expr: Expr, inner: Set[Var] | None) -> tuple[Expr, Expr]:
    """The terms without and with variables of ``inner``."""
    if inner is None:
        return Expr(expr.const), Expr(0, dict(expr.terms))
    moving = {
        atom: factor
        for atom, factor in expr.terms
        if any(v in inner for v in Expr(0, {atom: 1}).variables())
    }
    return expr - Expr(0, moving), Expr(0, moving)


def perfect_loops(body: list[Node]) -> tuple[list[For], list[Node]]:
    """The loops that are nested perfectly from the outside in, and the innermost body."""
    loops: list[For] = []
    while len(body) == 1 and isinstance(body[0], For):
        loops.append(body[0])
        body = body[0].body
    return loops, body
