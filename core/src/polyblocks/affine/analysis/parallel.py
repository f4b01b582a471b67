"""Which loops have independent iterations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from polyblocks.affine.access import address, is_whole
from polyblocks.affine.analysis.boxes import Box, overlap, reach, where_it_runs, with_loops
from polyblocks.affine.analysis.coverage import all_same_for, same_for
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    Access,
    AffineAccess,
    Buffer,
    For,
    IndirectAccess,
    Node,
    Store,
    Value,
    index_exprs,
    local_buffers,
    walk,
)


def is_parallel(loop: For, nodes: list[Node]) -> bool:
    """Whether no iteration of ``loop`` touches what another one writes, but for atomic updates."""
    local = local_buffers(loop.body)
    accesses = [n for n in walk(loop.body) if isinstance(n, Access) and n.buffer not in local]
    stores = [n for n in accesses if n.writes]
    inside = [n for n in walk(loop.body) if isinstance(n, For)]
    blocks = _Blocks(inside)
    inner = {n.var for n in inside} | blocks.numbers
    reach: _Reach | None = None
    exprs: dict[Value, Expr] = {}
    if any(isinstance(n, IndirectAccess) for n in accesses):
        exprs = index_exprs(nodes)
    sharing: dict[Buffer, list[Access]] = {store.buffer.base: [] for store in stores}
    for access in accesses:
        if (base := access.buffer.base) in sharing:
            sharing[base].append(access)
    for base, some in sharing.items():
        if all(a.buffer is some[0].buffer for a in some) and _all_apart(some, loop, inner, blocks):
            sharing[base] = []
    for store in stores:
        for other in sharing[store.buffer.base]:
            if store.atomic and other.atomic:
                continue
            if other.buffer is not store.buffer:
                if _apart_in_memory(store, other, loop, inner, blocks):
                    continue
                reach = reach or _Reach(loop)
                if not reach.apart_in_rows(store, other):
                    return False
                continue
            mine, theirs = _known_dimensions(store, other, exprs)
            if same_for(blocks.counted(mine), blocks.counted(theirs), loop.var, inner):
                continue
            if not isinstance(store, Store) or not isinstance(other, AffineAccess):
                return False
            reach = reach or _Reach(loop)
            if not reach.disjoint(store, other) and not reach.apart_in_rows(store, other):
                return False
    return True


def _all_apart(accesses: list[Access], loop: For, inner: set[Var], blocks: _Blocks) -> bool:
    """Whether it is seen at once that these accesses to a buffer meet in one iteration only."""
    if not all(isinstance(access, AffineAccess) for access in accesses):
        return False
    indices = [access.index for access in accesses if isinstance(access, AffineAccess)]
    return all_same_for([blocks.counted(index) for index in indices], loop.var, inner)


def _apart_in_memory(
    store: Access, other: Access, loop: For, inner: set[Var], blocks: _Blocks
) -> bool:
    """Whether accesses through two views of one buffer meet in one iteration only."""
    if not isinstance(store, Store) or not isinstance(other, AffineAccess):
        return False
    if not is_whole(store.buffer) or not is_whole(other.buffer):
        return False
    places = [_place_in_bounds(a, loop.var) for a in (store, other)]
    (mine, _), (theirs, _) = places
    free = inner.union(*(variables for _, variables in places))
    return same_for(blocks.counted([mine]), blocks.counted([theirs]), loop.var, free)


class _Blocks:
    """Loops over blocks of iterations, with a shorter last one, as one number each.

    ``k * block + i`` with ``i < min(k, n - k * block)`` stays below ``n``, which the ranges of the
    two do not show. A loop with a constant bound below its extent, as of a tile that is not full,
    is a number below that bound.
    """

    def __init__(self, loops: list[For]) -> None:
        self.numbers: set[Var] = set()
        self._known: list[tuple[Var, Var, Expr]] = []
        self._partial: dict[Var, Expr] = {}
        moving = {loop.var for loop in loops}
        for one in loops:
            for upper in one.upper if not one.lower else ():
                if upper.is_constant:
                    number = Var(max(upper.const, 1))
                    self.numbers.add(number)
                    self._partial[one.var] = Expr.of(number)
                    continue
                ((block, factor),) = upper.terms if len(upper.terms) == 1 else ((None, 0),)
                if isinstance(block, Var) and block in moving and -factor == one.var.extent:
                    number = Var(max(upper.const, 1))
                    self.numbers.add(number)
                    rest = Expr.of(number) + Expr(0, {block: factor})
                    self._known.append((block, one.var, rest))

    def counted(self, index: Sequence[Expr]) -> list[Expr]:
        """Indices in which the number of an iteration stands for its block and its place there."""
        if not self.numbers:
            return list(index)
        return [self._counted(expr) for expr in index]

    def _counted(self, expr: Expr) -> Expr:
        for block, place, rest in self._known:
            if place in set(expr.variables()):
                joined = expr.substitute({place: rest})
                if block not in set(joined.variables()):
                    expr = joined
        return expr.substitute(self._partial)


def _place_in_bounds(access: AffineAccess, var: Var) -> tuple[Expr, set[Var]]:
    """The address of an access, where indices that seem to leave the buffer are any inside.

    Loops that end before their extent does keep them in it. ``var`` moves no such index.

    Returns:
        The address, and the variables that stand for indices.
    """
    index: list[Expr] = []
    free: set[Var] = set()
    for expr, extent in zip(access.index, access.buffer.shape, strict=True):
        low, high = expr.range()
        if (low < 0 or high >= extent) and var not in set(expr.variables()):
            inside = Var(extent)
            free.add(inside)
            expr = Expr.of(inside)
        index.append(expr)
    return address(access.buffer, index), free


def _known_dimensions(
    a: Access, b: Access, exprs: dict[Value, Expr]
) -> tuple[list[Expr], list[Expr]]:
    """The indices of two accesses in the dimensions in which both are affine."""
    pairs = [
        (mine, theirs)
        for mine, theirs in zip(*(_exprs(access, exprs) for access in (a, b)), strict=True)
        if mine is not None and theirs is not None
    ]
    return [mine for mine, _ in pairs], [theirs for _, theirs in pairs]


def _exprs(access: Access, exprs: dict[Value, Expr]) -> list[Expr | None]:
    return access.index_by(lambda expr: expr, exprs.get)


class _Reach:
    """Where the accesses in a loop can go, with the bounds of the loops around them."""

    def __init__(self, loop: For) -> None:
        self.var = loop.var
        self.around = dict(with_loops(loop.body))
        self._box = cache(self._box_of)
        self._active = cache(self._active_of)

    def disjoint(self, a: AffineAccess, b: AffineAccess) -> bool:
        """Whether different iterations never touch the same element through ``a`` and ``b``."""
        if overlap(self._box(a), self._box(b)):
            (first_a, last_a), (first_b, last_b) = self._active(a), self._active(b)
            # Both run in one and the same iteration only.
            return max(last_a, last_b) <= min(first_a, first_b)
        return True

    def apart_in_rows(self, a: Access, b: Access) -> bool:
        """Whether accesses to one memory are at different places of its rows.

        Rows are those of any view: one that sees all memory as a row has a margin's, too.
        """
        if not isinstance(a, AffineAccess) or not isinstance(b, AffineAccess):
            return False
        if not is_whole(a.buffer) or not is_whole(b.buffer):
            return False
        base = a.buffer.base
        views = {n.buffer for n in self.around if isinstance(n, Access) and n.buffer.base is base}
        for length in {view.shape[-1] for view in views if view.shape}:
            mine, theirs = (self._in_row(access, length) for access in (a, b))
            if mine is not None and theirs is not None and not overlap((mine,), (theirs,)):
                return True
        return False

    def _in_row(self, access: AffineAccess, length: int) -> tuple[int, int] | None:
        """Where an access is in rows of a length; None if that is not known."""
        place = address(access.buffer, access.index)
        terms = {atom: factor for atom, factor in place.terms if factor % length}
        found = reach(Expr(place.const % length, terms), self.around[access])
        return found if found[0] >= 0 and found[1] <= length else None

    def _box_of(self, access: AffineAccess) -> Box:
        return tuple(reach(e, self.around[access]) for e in access.index)

    def _active_of(self, access: AffineAccess) -> tuple[int, int]:
        """First and last iteration in which an access can happen, from bounds that say so."""
        first, last = 0, self.var.extent - 1
        for loop in self.around[access]:
            least, most = where_it_runs(Expr.of(self.var), loop)
            first, last = max(first, least), min(last, most)
        return first, last
