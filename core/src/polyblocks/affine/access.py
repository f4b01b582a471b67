"""Accesses as addresses: linear offsets, strides along loops."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache

from polyblocks.affine.expr import Atom, Div, Expr, Mod, Var
from polyblocks.affine.model import Access, AffineAccess, Buffer, Node, walk

#: Longest stride worth loading whole for a part: as many vectors are in registers at once.
MAX_STEP = 4


def strides(buffer: Buffer) -> tuple[int, ...]:
    """Elements between neighbours along each dimension; row-major unless the type says else."""
    if buffer.memref_type is None:
        return _row_major(buffer.shape)
    if buffer.known_strides is None:
        buffer.known_strides = tuple(buffer.memref_type.get_strides_and_offset()[0])
    return buffer.known_strides


@lru_cache(maxsize=1024)
def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    steps: list[int] = []
    step = 1
    for extent in reversed(shape):
        steps.append(step)
        step *= extent
    return tuple(reversed(steps))


def reach(buffer: Buffer) -> int:
    """Elements from a buffer's lowest one to its highest one, both included."""
    pairs = zip(buffer.shape, strides(buffer), strict=True)
    return 1 + sum((extent - 1) * abs(step) for extent, step in pairs)


def is_whole(buffer: Buffer) -> bool:
    """Whether it is all the memory of its base, row by row: the same address, the same element."""
    base = buffer.base
    if buffer.element != base.element or buffer.numel != base.numel:
        return False
    return all(begins_and_ends_with_memory(b) for b in (buffer, base))


def begins_and_ends_with_memory(buffer: Buffer) -> bool:
    """Whether the elements follow each other row by row, the first one where the memory begins."""
    if buffer.memref_type is None:
        return True
    found, offset = buffer.memref_type.get_strides_and_offset()
    return offset == 0 and tuple(found) == _row_major(buffer.shape)


def address(buffer: Buffer, index: Iterable[Expr]) -> Expr:
    """Offset in elements of an access from the first element of the buffer."""
    const = 0
    terms: dict[Atom, int] = {}
    for expr, stride in zip(index, strides(buffer), strict=True):
        const += expr.const * stride
        for atom, factor in expr.terms:
            terms[atom] = terms.get(atom, 0) + factor * stride
    return join_parts(Expr(const, terms))


def digits_of_whole(expr: Expr) -> Expr:
    """Digits of a part of a number as digits of the number, so that equal ones look alike.

    ``(e mod (a * b)) floordiv b`` is ``(e floordiv b) mod a``, and ``(e mod (a * b)) mod b`` is
    ``e mod b``.
    """
    result = Expr(expr.const)
    for atom, factor in expr.terms:
        if isinstance(atom, Var):
            result = result + Expr(0, {atom: factor})
            continue
        part = digits_of_whole(atom.dividend)
        inner = _only_mod(part, atom.divisor)
        if isinstance(atom, Div):
            if inner is None:
                part = part // atom.divisor
            else:
                part = (inner.dividend // atom.divisor) % (inner.divisor // atom.divisor)
        else:
            part = (part if inner is None else inner.dividend) % atom.divisor
        result = result + part * factor
    return result


def _only_mod(expr: Expr, divisor: int) -> Mod | None:
    """The remainder that an expression is, by a multiple of ``divisor``."""
    if expr.const or len(expr.terms) != 1:
        return None
    ((atom, factor),) = expr.terms
    matches = isinstance(atom, Mod) and factor == 1 and atom.divisor % divisor == 0
    return atom if matches and isinstance(atom, Mod) else None


def join_parts(expr: Expr) -> Expr:
    """``d * (e floordiv d) + e mod d`` is ``e``, also when both have a common factor.

    In several steps for the digits of a number, whose lower ones depend on the number only::

        6 * (n floordiv 6) + 2 * ((n mod 6) floordiv 2) + n mod 2

    Neighbouring digits without those above are a remainder:
    ``d * ((e floordiv d) mod c) + e mod d`` is ``e mod (c * d)``.
    """
    if not any(isinstance(atom, Mod) for atom, _ in expr.terms):
        return expr
    factors = dict(expr.terms)
    for atom, factor in expr.terms:
        if not isinstance(atom, Mod):
            continue
        for other, step in expr.terms:
            if isinstance(other, Var) or step != factor * atom.divisor:
                continue
            if isinstance(other, Mod):
                if other.dividend == atom.dividend // atom.divisor:
                    del factors[atom], factors[other]
                    whole = atom.dividend % (atom.divisor * other.divisor)
                    return join_parts(Expr(expr.const, factors) + whole * factor)
                continue
            if other.divisor != atom.divisor or not _congruent(other.dividend, atom):
                continue
            del factors[atom], factors[other]
            return join_parts(Expr(expr.const, factors) + other.dividend * factor)
    return expr


def _congruent(number: Expr, rest: Mod) -> bool:
    """Whether a number is congruent to ``rest``'s dividend, modulo its divisor."""
    if number == rest.dividend:
        return True
    if len(number.terms) != 1 or number.const:
        return False
    ((atom, factor),) = number.terms
    return (
        isinstance(atom, Mod)
        and factor == 1
        and atom.divisor % rest.divisor == 0
        and atom.dividend == rest.dividend
    )


def stride_along(buffer: Buffer, index: Collection[Expr], var: Var) -> int | None:
    """Elements by which the access moves per iteration of ``var``; None if not constant."""
    moved = 0
    for expr, stride in zip(index, strides(buffer), strict=True):
        for atom, factor in expr.terms:
            if atom is var:
                moved += factor * stride
            elif not isinstance(atom, Var) and atom.dividend.depends_on(var):
                # Digits of it, which may be parts of one number.
                return address(buffer, index).coefficient(var)
    return moved


def accesses(nodes: list[Node]) -> list[AffineAccess]:
    """All affine accesses in these nodes."""
    return [n for n in walk(nodes) if isinstance(n, AffineAccess)]


def all_accesses(nodes: list[Node]) -> list[Access]:
    """As :func:`accesses`, with those at run-time indices."""
    return [n for n in walk(nodes) if isinstance(n, Access)]


def row_of_lines(elements: int, size: int, line: int = 64) -> int:
    """Elements of a row of an odd number of lines: rows then begin in different sets of a cache."""
    per_line = max(1, line // size)
    lines = -(-elements // per_line)
    return (lines | 1) * per_line if lines > 1 else elements


def divisions(expr: Expr) -> Iterator[tuple[Expr, int]]:
    """The dividends in an expression, and their divisors."""
    for atom, _ in expr.terms:
        if not isinstance(atom, Var):
            yield atom.dividend, atom.divisor
            yield from divisions(atom.dividend)
