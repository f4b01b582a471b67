"""Boxes of array elements: what an access covers, and what is left of it.

A box is a tuple of half-open ranges ``(first, end)``, one for each dimension of a buffer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import AffineAccess, For, Node

Box = tuple[tuple[int, int], ...]


def touched(index: Sequence[Expr]) -> Box:
    """A box around everything that an access can touch, whatever its loops do."""
    ranges = (expr.range() for expr in index)
    return tuple((low, high + 1) for low, high in ranges)


def covered(index: Sequence[Expr], loops: Sequence[For]) -> Box | None:
    """The box whose elements an access touches once each; None where it is no box.

    Recognized is what is easily seen: every dimension is a constant, or a loop variable of its own
    plus a constant; every loop is used, and none has bounds that depend on another one.
    """
    free = {loop.var for loop in loops if loop.var.extent != 1}
    if any(loop.bounded for loop in loops):
        return None
    box: list[tuple[int, int]] = []
    for expr in index:
        if expr.is_constant:
            box.append((expr.const, expr.const + 1))
            continue
        if len(expr.terms) != 1:
            return None
        ((atom, factor),) = expr.terms
        if not isinstance(atom, Var) or factor != 1 or atom not in free:
            return None
        free.remove(atom)
        box.append((expr.const, expr.const + atom.extent))
    return None if free else tuple(box)


def volume(box: Box) -> int:
    """Number of elements."""
    n = 1
    for low, high in box:
        n *= max(0, high - low)
    return n


def overlap(a: Box, b: Box) -> bool:
    """Whether two boxes have an element in common."""
    return all(max(la, lb) < min(ha, hb) for (la, ha), (lb, hb) in zip(a, b, strict=True))


def intersection(a: Box, b: Box) -> Box:
    """The elements that are in both; a range that ends where it starts if there are none."""
    ranges = [(max(la, lb), min(ha, hb)) for (la, ha), (lb, hb) in zip(a, b, strict=True)]
    return tuple((low, max(low, high)) for low, high in ranges)


def hull(a: Box, b: Box) -> Box:
    """The smallest box around both."""
    return tuple((min(la, lb), max(ha, hb)) for (la, ha), (lb, hb) in zip(a, b, strict=True))


def subtract(box: Box, other: Box) -> list[Box]:
    """The part of ``box`` outside of ``other`` as disjoint boxes, two for each dimension at most.

    Slabs are cut off along the first dimensions first, so that they are long in memory.
    """
    if not overlap(box, other):
        return [box] if volume(box) else []
    out: list[Box] = []
    rest = list(box)
    for dim, (low, high) in enumerate(other):
        first, end = rest[dim]
        if first < low:
            out.append((*rest[:dim], (first, low), *rest[dim + 1 :]))
        if high < end:
            out.append((*rest[:dim], (high, end), *rest[dim + 1 :]))
        rest[dim] = (max(first, low), min(end, high))
    return out


def difference(box: Box, others: Iterable[Box]) -> list[Box]:
    """The part of ``box`` that is in none of the others, as disjoint boxes."""
    left = [box] if volume(box) else []
    for other in others:
        left = [piece for b in left for piece in subtract(b, other)]
    return left


def with_loops(
    nodes: Sequence[Node], around: tuple[For, ...] = ()
) -> Iterator[tuple[AffineAccess, tuple[For, ...]]]:
    """All affine accesses in these nodes, each with the loops around it, from the outside in."""
    for node in nodes:
        if isinstance(node, For):
            yield from with_loops(node.body, (*around, node))
        elif isinstance(node, AffineAccess):
            yield node, around


def reach(expr: Expr, loops: Sequence[For]) -> tuple[int, int]:
    """First value and end of an expression, seen through the bounds of the loops around it."""
    low, high = expr.range()
    for loop in loops:
        factor = expr.coefficient(loop.var)
        if not factor or not loop.bounded:
            continue
        rest = expr - Expr(0, {loop.var: factor})
        lows = [(rest + e * factor).range() for e in loop.lower]
        highs = [(rest + (e - 1) * factor).range() for e in loop.upper]
        if factor < 0:
            lows, highs = highs, lows
        low = max([low, *(r[0] for r in lows)])
        high = min([high, *(r[1] for r in highs)])
    for loop in loops:
        if loop.bounded:
            least, most = where_it_runs(expr, loop)
            low, high = max(low, least), min(high, most)
    return low, high + 1


def where_it_runs(expr: Expr, loop: For) -> tuple[int, int]:
    """Least and largest value of an expression for which a loop's bounds leave an iteration."""
    low, high = expr.range()
    if expr.is_constant:
        return low, high
    atom, own = expr.terms[0]
    for begin in (Expr(0), *loop.lower):
        for end in (Expr(loop.var.extent), *loop.upper):
            # It runs where this is not negative: a multiple of the expression, plus a remainder.
            room = end - begin - 1
            factor, left = divmod(dict(room.terms).get(atom, 0), own)
            if left or not factor:
                continue
            _, rest = (room - expr * factor).range()
            if factor > 0:
                low = max(low, -(rest // factor))
            else:
                high = min(high, rest // -factor)
    return low, high
