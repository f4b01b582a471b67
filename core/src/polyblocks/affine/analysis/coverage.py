"""Properties of single accesses: coverage, and injectivity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from math import gcd

from polyblocks.affine.expr import Atom, Expr, Var
from polyblocks.affine.model import Buffer, For


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
                # A loop around the nest: one of its values at a time.
                return None
            found[atom] = (dimension, factor)
            base *= atom.extent
        if expr.const != 0 or base != extent:
            return None
    return found if all(v in found or v.extent == 1 for v in loops) else None


def iteration_at(
    found: Mapping[Var, tuple[int, int]], shape: Sequence[int], index: Sequence[Expr]
) -> dict[Var, Expr]:
    """In which iteration an element is touched.

    Args:
        found: what :func:`digits` says of the loops.
        shape: of the buffer.
        index: where the element is.
    """
    at: dict[Var, Expr] = {}
    for var, (dimension, factor) in found.items():
        digit = index[dimension] // factor
        # The highest one is never too large.
        at[var] = digit % var.extent if factor * var.extent < shape[dimension] else digit
    return at


def is_injective(index: Sequence[Expr], variables: Iterable[Var]) -> bool:
    """Whether different values of the variables always give different indices.

    Sufficient: one after the other, each has in some dimension a factor larger than all that the
    rest can vary there, but for those that are already known: as ``i``, then ``j`` in ``4 * i + j``
    with ``j < 4``.
    """
    left = set(variables)
    known: set[Var] = set()
    while left:
        found = {v for v in left if any(_tells(expr, v, known) for expr in index)}
        if not found:
            return False
        known |= found
        left -= found
    return True


def _tells(expr: Expr, var: Var, known: Set[Var]) -> bool:
    """Whether ``var`` follows from an index and the values of the variables that are known."""
    factor = expr.coefficient(var)
    if not factor:
        return False
    rest = Expr(0, {atom: c for atom, c in expr.terms if atom is not var and atom not in known})
    low, high = rest.range()
    return abs(factor) > high - low


def same_for(
    index_a: Sequence[Expr], index_b: Sequence[Expr], var: Var, inner: Set[Var] | None = None
) -> bool:
    """Whether both accesses touch a common element only in the same iteration of ``var``.

    Sufficient: some dimension tells iterations of ``var`` apart in both, by the same factor, and
    the two differ there by less than the factor in whatever else varies: the variables ``inner``
    of loops inside, all others being the same for both; None stands for all variables. Terms that
    move by multiples of more than ``var`` and the others together cannot make up for them: channels
    differ in ``256 * pixel + 16 * channel + lane``.
    """
    for a, b in zip(index_a, index_b, strict=True):
        factor = a.coefficient(var)
        if not factor or b.coefficient(var) != factor:
            continue
        rest_a, rest_b = (e - Expr(0, {var: factor}) for e in (a, b))
        if _differ_by(rest_a, rest_b, inner) < abs(factor):
            return True
        for unit in _units(factor, (a, b), inner):
            difference = _differ_by(*_modulo(rest_a, rest_b, unit), inner)
            moved = abs(factor) * (var.extent - 1)
            if difference < abs(factor) and moved + difference < unit:
                return True
    return False


def all_same_for(
    indices: Sequence[Sequence[Expr]], var: Var, inner: Set[Var] | None = None
) -> bool:
    """Whether :func:`same_for` holds for any two of these accesses, in a time linear in them.

    Sufficient, and enough for most: in one dimension all have the same factor of ``var`` and the
    same terms that are fixed, and all else there varies by less than the factor, but for multiples
    of a number that is above all these together.
    """
    return any(_all_apart(exprs, var, inner) for exprs in zip(*indices, strict=True))


def _all_apart(exprs: Sequence[Expr], var: Var, inner: Set[Var] | None) -> bool:
    factor = exprs[0].coefficient(var)
    if not factor:
        return False
    distinct = list(dict.fromkeys(exprs))
    if any(e.coefficient(var) != factor for e in distinct[1:]):
        return False
    of_var = Expr(0, {var: factor})
    rests = [e - of_var for e in distinct]
    spread = _spread(rests, inner)
    if spread is not None and spread < abs(factor):
        return True
    moved = abs(factor) * (var.extent - 1)
    for unit in _units(factor, distinct, inner):
        spread = _spread([_modulo(rests[0], rest, unit)[1] for rest in rests], inner)
        if spread is not None and spread < abs(factor) and moved + spread < unit:
            return True
    return False


def _units(factor: int, exprs: Sequence[Expr], inner: Set[Var] | None) -> set[int]:
    """Numbers whose multiples expressions may differ by, that ``factor`` counts below.

    The largest one of what varies; that of what is constant, too; and these without the fixed terms
    that all have in common, which cancel.
    """
    common = set.intersection(*(set(_split(e, inner)[0].terms) for e in exprs))
    terms = {term for e in exprs for term in e.terms}
    apart = {e.const - exprs[0].const for e in exprs}
    found = set()
    for some in (terms, terms - common):
        steps = {c for _, c in some}
        found |= {gcd(*(c for c in s if abs(c) > abs(factor))) for s in (steps, steps | apart)}
    return {unit for unit in found if unit}


def _spread(exprs: Sequence[Expr], inner: Set[Var] | None) -> int | None:
    """The most by which any two can differ, where only ``inner`` are not the same.

    None where they have other terms of what is the same.
    """
    split = [_split(expr, inner) for expr in exprs]
    if any(fixed.terms != split[0][0].terms for fixed, _ in split[1:]):
        return None
    ranges = [(fixed.const, *moving.range()) for fixed, moving in split]
    return max(c + high for c, _, high in ranges) - min(c + low for c, low, _ in ranges)


def _differ_by(a: Expr, b: Expr, inner: Set[Var] | None) -> int:
    """The most by which two expressions can differ, where only ``inner`` are not the same."""
    fixed_a, moving_a = _split(a, inner)
    fixed_b, moving_b = _split(b, inner)
    low, high = (fixed_a - fixed_b).range()
    low_a, high_a = moving_a.range()
    low_b, high_b = moving_b.range()
    return max(high + high_a - low_b, -(low + low_a - high_b))


def _modulo(a: Expr, b: Expr, unit: int) -> tuple[Expr, Expr]:
    """Two expressions without multiples of a unit, their constants as near as these can be."""
    rest_a, rest_b = (Expr(0, {v: c for v, c in e.terms if c % unit}) for e in (a, b))
    apart = (b.const - a.const) % unit
    return rest_a, rest_b + (apart if 2 * apart <= unit else apart - unit)


def _split(expr: Expr, inner: Set[Var] | None) -> tuple[Expr, Expr]:
    """The terms without and with variables of ``inner``."""
    if inner is None:
        return Expr(expr.const), Expr(0, dict(expr.terms))
    fixed: dict[Atom, int] = {}
    moving: dict[Atom, int] = {}
    for atom, factor in expr.terms:
        variables = (atom,) if isinstance(atom, Var) else atom.dividend.variables()
        (moving if any(v in inner for v in variables) else fixed)[atom] = factor
    return Expr(expr.const, fixed), Expr(0, moving)


@dataclass
class Slab:
    """A box that loops go through, one for each of its dimensions that is longer than 1.

    Attributes:
        low, high: the first element of the box and the one after the last, by dimension.
        variables: what counts through the box, by dimension; None where it has one element.
    """

    low: list[int]
    high: list[int]
    variables: list[Var | None]

    @classmethod
    def of(cls, index: tuple[Expr, ...], loops: list[For]) -> Slab | None:
        """The box of all elements at an index, each met once; None if they are none."""
        slab = cls([], [], [])
        for expr in index:
            found = [a for a, c in expr.terms if c == 1 and isinstance(a, Var) and a.value is None]
            if len(found) != len(expr.terms) or len(found) > 1:
                return None
            slab.variables.append(found[0] if found else None)
            slab.low.append(expr.const)
            slab.high.append(expr.const + (found[0].extent if found else 1))
        counted = [v for v in slab.variables if v is not None]
        if len(set(counted)) != len(counted):
            return None
        missed = any(f.var.extent > 1 and f.var not in counted for f in loops)
        return None if missed else slab
