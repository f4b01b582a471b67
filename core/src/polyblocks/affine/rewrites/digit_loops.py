"""Delinearize loops: one loop for each digit that indices use.

A product of matrices whose operands were rearranged counts one dimension where memory has several:
``%a[%i floordiv 8, %i mod 8]``. With a loop for each of them places are linear again.
"""

from __future__ import annotations

from polyblocks.affine.access import divisions
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    For,
    Index,
    IndirectAccess,
    IndirectStore,
    Node,
    Value,
    remove_dead,
    transform_indices,
    walk,
)
from polyblocks.affine.rewrites.run_time_places import known_exprs
from polyblocks.affine.rewrites.simplify import eliminate_common
from polyblocks.affine.subnests import perfect_loops


def split_at_digits(loops: list[For]) -> bool:
    """Split each of these loops that can be, in place; whether there was any.

    Loops with bounds stay, those that bounds depend on, and digits that a loop does not have a
    whole number of.
    """
    found = False
    pending = list(loops)
    while pending:
        loop = pending.pop()
        divisor = lowest_digit(loop)
        if divisor is not None:
            _split(loop, divisor)
            pending.append(loop)
            found = True
    return found


def lowest_digit(loop: For) -> int | None:
    """By what a variable is divided first; None if by nothing, or if its loop cannot be split."""
    if loop.bounded or loop.level is not None or loop.lanes or loop.unit or loop.tile:
        return None
    inner = [n for n in walk(loop.body) if isinstance(n, For)]
    if any(loop.var in set(e.variables()) for n in inner for e in n.bounds):
        return None
    whole = Expr.of(loop.var)
    divisors = {
        divisor
        for node in walk(loop.body)
        for expr in node.exprs
        for dividend, divisor in divisions(expr)
        if dividend == whole
    }
    lowest = min(divisors, default=0)
    return lowest if 0 < lowest < loop.var.extent and loop.var.extent % lowest == 0 else None


def _split(loop: For, size: int) -> None:
    """Let a loop count the upper digits, and a new one in it the lowest."""
    upper, lower = Var(loop.var.extent // size, loop.var.name), Var(size)
    number = Expr.of(upper) * size + lower
    transform_indices(loop.body, lambda e: e.substitute({loop.var: number}))
    carried = [Value(v.type) for v in loop.arguments]
    handed = [Value(v.type) for v in loop.arguments]
    inner = For(lower, loop.body, carried, loop.arguments, handed, loop.yields)
    loop.var, loop.body = upper, [inner]
    loop.arguments, loop.yields = carried, handed


def count_indices(nodes: list[Node]) -> bool:
    """Let loops count the indices of a scatter that are affine in them; whether there was one.

    Frameworks count the updates of a table by one number, and compute the row of each.
    """
    loops, body = perfect_loops(nodes)
    accesses = [n for n in body if isinstance(n, IndirectAccess)]
    stores = [n for n in accesses if isinstance(n, IndirectStore)]
    if not loops or len(stores) != 1:
        return False
    counted = {n.result for n in body if isinstance(n, Index)}
    known = known_exprs(body)
    raised: list[Node] = []
    for access in accesses:
        if access.buffer is not stores[0].buffer:
            continue
        for place, value in enumerate(access.index):
            expr = known.get(value)
            if value in counted or expr is None or expr.is_constant:
                continue
            low, high = expr.range()
            if low >= 0 and high < access.buffer.shape[place]:
                access.index[place] = Value(value.type)
                raised.append(Index(access.index[place], expr))
    if not raised:
        return False
    body[:0] = raised
    split_at_digits(loops)
    remove_dead(nodes)
    eliminate_common(nodes)
    return True
