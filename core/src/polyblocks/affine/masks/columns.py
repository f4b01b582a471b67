"""Columns of a tile's buffers: what accesses read and write of them."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass
from math import gcd

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import Access, AffineAccess, Buffer, For, Load, Node, Store, walk


@dataclass(frozen=True)
class Columns:
    """Where the columns of a buffer are: a dimension, or what is left of rows in one.

    Attributes:
        dim: the dimension.
        row: how many elements a row has; 0 where all are columns.
        upper: whether it is about columns from a number on, or below it.
    """

    dim: int
    row: int
    upper: bool

    def of(self, access: AffineAccess) -> Expr | None:
        """The column of an access; None if that is not known."""
        expr = access.index[self.dim]
        if not self.row:
            return expr
        terms = {atom: c for atom, c in expr.terms if c % self.row}
        column = Expr(expr.const % self.row, terms)
        low, high = column.range()
        return column if low >= 0 and high < self.row else None

    def is_tighter(self, at: Expr, other: Expr) -> bool:
        """Whether the columns from one number on are surely more than those from another one."""
        more = other - at if self.upper else at - other
        return more.tight_range()[0] >= 0


def rows_of(nodes: list[Node]) -> dict[Buffer, dict[tuple[int, int], None]]:
    """For each buffer a dimension and how many elements may be rows in it, 0 for no rows."""
    found: dict[Buffer, dict[tuple[int, int], None]] = {}
    for node in walk(nodes):
        if isinstance(node, AffineAccess) and node.buffer.kind == "local":
            for dim, expr in enumerate(node.index):
                factors = [abs(c) for _, c in expr.terms]
                rows = {gcd(*(c for c in factors if c % row == 0)) for row in factors if row > 1}
                if factors:
                    mine = found.setdefault(node.buffer, {})
                    mine.update({(dim, row): None for row in (0, *sorted(rows, reverse=True))})
    return found


def counts(column: Expr, var: Var, inside: set[Var]) -> bool:
    """Whether inner loops count the columns from one value of a variable to the next one."""
    factor = column.coefficient(var) or 0
    low, high = Expr(0, {a: c for a, c in column.terms if a in inside}).range()
    return factor > high - low


def ends_at(load: Load, columns: Columns, at: Expr) -> bool:
    """Whether a load reads no column beyond a number, wherever the tile is."""
    column = columns.of(load)
    if column is None:
        return False
    rest = at - 1 - column if columns.upper else column - at
    return rest.tight_range()[0] >= 0


Box = tuple[tuple[int, int], ...]


def places_of(access: AffineAccess, dim: int, row: int) -> tuple[Expr, ...] | None:
    """The index of an access, with a dimension in rows as two; None if it is not in rows."""
    column = Columns(dim, row, True).of(access)
    if column is None:
        return None
    if not row:
        return access.index
    rest = access.index[dim] - column
    number = Expr(rest.const // row, {atom: c // row for atom, c in rest.terms})
    return (*access.index[:dim], number, column, *access.index[dim + 1 :])


def box_of(access: AffineAccess, dim: int, row: int) -> Box | None:
    """The least and the largest index of an access in each dimension, as :func:`places_of`.

    Bounds of loops keep it within the buffer.
    """
    places = places_of(access, dim, row)
    if places is None:
        return None
    shape = list(access.buffer.shape)
    if row:
        shape[dim : dim + 1] = [-(-shape[dim] // row), row]
    ranges = [e.range() for e in places]
    return tuple(
        (max(low, 0), min(high, extent - 1))
        for (low, high), extent in zip(ranges, shape, strict=True)
    )


def filled_by(store: Store, dim: int, row: int, others: Container[Var]) -> Box | None:
    """The box of the elements of a store, if it stores each of them.

    Args:
        store: the store.
        dim, row: see :func:`places_of`.
        others: variables that do not count from 0 to their extents.
    """
    places = places_of(store, dim, row)
    seen: set[Var] = set()
    for expr in places or ():
        # The digits of one number, the last one first.
        count = 1
        for atom, factor in sorted(expr.terms, key=lambda term: term[1]):
            if factor != count or not isinstance(atom, Var) or atom in seen or atom in others:
                return None
            seen.add(atom)
            count *= atom.extent
        if expr.const and not expr.is_constant:
            return None
    return None if places is None else tuple(e.range() for e in places)


def is_within(box: Box | None, other: Box) -> bool:
    """Whether a box is surely in another one."""
    if box is None or len(box) != len(other):
        return False
    return all(low <= a and b <= high for (a, b), (low, high) in zip(box, other, strict=True))


def rewritten_in(bodies: Iterable[tuple[list[Node], list[For]]]) -> set[Buffer]:
    """Buffers that code may read after it has written to them.

    It may not where it replaces single elements by what it computes of them.

    Args:
        bodies: those of loops, each with the loops around it.
    """
    accesses: dict[Buffer, list[tuple[Access, tuple[int, object] | None]]] = {}
    for number, (nodes, around) in enumerate(bodies):
        loops = {loop.var for loop in around}
        for node in nodes:
            if isinstance(node, Access):
                each = isinstance(node, AffineAccess) and loops.issubset(node.variables())
                place = (number, node.index) if each and isinstance(node.index, tuple) else None
                accesses.setdefault(node.buffer, []).append((node, place))
    found: set[Buffer] = set()
    for buffer, mine in accesses.items():
        writes = [node.writes for node, _ in mine]
        if not any(writes) or all(writes):
            continue
        places = {place for _, place in mine}
        if len(places) > 1 or None in places or writes != sorted(writes):
            found.add(buffer)
    return found
