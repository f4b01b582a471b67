"""A loop in pieces: what it computes where masks leave nothing of what it loads, and the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from polyblocks.affine.analysis.mean_trips import mean_trips
from polyblocks.affine.element import I1, dtype_of
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.masks.constraints import Bound, Condition, bound_of
from polyblocks.affine.model import (
    Access,
    For,
    IndirectAccess,
    Node,
    Op,
    Value,
    clone,
    remove_dead,
    replace_values,
)
from polyblocks.affine.ops import constant_number


@dataclass(frozen=True)
class Bands:
    """A loop in pieces that follow each other.

    Attributes:
        pieces: two or three loops over all its iterations, in their order.
        saved: bytes that an iteration of the loops around does not load any more, on average.
        before: bytes that it accessed.
    """

    pieces: list[For]
    saved: float
    before: float


@dataclass(frozen=True)
class _Outside:
    """The iterations outside of a bound.

    Attributes:
        bound: the bound.
        known: the outcomes of conditions there.
        saved: bytes that they load less when these are known.
    """

    bound: Bound
    known: Mapping[Value, bool]
    saved: float


def bands_of(
    loop: For, around: list[For], conditions: Mapping[Value, Condition], step: int
) -> Bands | None:
    """Cut an innermost loop where conditions make some of its loads useless.

    Args:
        loop: the loop, with straight-line code.
        around: the loops around it, outer before inner.
        conditions: comparisons of affine integers.
        step: cuts are at multiples of it.

    Returns:
        None if every load is needed everywhere.
    """
    found = list(_outsides(loop, around, conditions, step))
    low, high = (
        max((o for o in found if o.bound.upper is upper), key=lambda o: o.saved, default=None)
        for upper in (False, True)
    )
    if low is None and high is None:
        return None
    first = (low.bound.at,) if low is not None else ()
    end = (high.bound.at,) if high is not None else ()
    pieces = []
    if low is not None:
        pieces.append(_piece(loop, (), first, low.known))
    pieces.append(_piece(loop, first, end, {}))
    if high is not None:
        # Where the middle is empty, its end may come before its beginning.
        pieces.append(_piece(loop, (*first, *end), (), high.known))
    saved = sum(o.saved for o in (low, high) if o is not None)
    return Bands(pieces, saved, _accessed(loop.body, loop.var) * mean_trips(loop, around))


def _outsides(
    loop: For, around: list[For], conditions: Mapping[Value, Condition], step: int
) -> Iterator[_Outside]:
    """Bounds, and the loads that are not needed beyond them."""
    outer = {other.var for other in around}
    known: dict[Bound, dict[Value, bool]] = {}
    for value in [v for node in loop.body for v in node.defines if v in conditions]:
        for outcome in (True, False):
            for number in conditions[value].needed_for(outcome):
                bound = bound_of(number, loop.var, outer, ())
                bound = None if bound is None else bound.rounded(step, outer)
                if bound is not None and bound.cuts(loop.var):
                    known.setdefault(bound, {})[value] = not outcome
    before = _accessed(loop.body, loop.var)
    for bound, outcomes in known.items():
        implied = {
            v: outcome
            for other, more in known.items()
            if other.upper is bound.upper and bound.implies(other)
            for v, outcome in more.items()
        }
        outcomes = implied | outcomes
        lost = before - _accessed(_decided(loop.body, {}, outcomes), loop.var)
        if lost > 0:
            ends = ((bound.at,), ()) if bound.upper else ((), (bound.at,))
            trips = mean_trips(_part(loop, *ends), around)
            yield _Outside(bound, outcomes, lost * trips)


def _part(loop: For, lower: tuple[Expr, ...], upper: tuple[Expr, ...]) -> For:
    return replace(loop, lower=(*loop.lower, *lower), upper=(*loop.upper, *upper))


def _piece(
    loop: For, lower: tuple[Expr, ...], upper: tuple[Expr, ...], known: Mapping[Value, bool]
) -> For:
    """The iterations between some bounds, in which some conditions are known."""
    var = Var(loop.var.extent, loop.var.name)
    body = _decided(loop.body, {loop.var: Expr.of(var)}, known)
    return replace(_part(loop, lower, upper), var=var, body=body)


def _decided(
    nodes: list[Node], variables: dict[Var, Expr], known: Mapping[Value, bool]
) -> list[Node]:
    """A copy of straight-line code without what is not needed where some conditions are known."""
    copies: dict[Value, Value] = {}
    body = clone(nodes, copies, variables)
    if known:
        same = _same(nodes, known)
        replace_values(body, {copies[v]: copies.get(s, s) for v, s in same.items()})
        remove_dead(body)
    return body


def _same(nodes: Iterable[Node], known: Mapping[Value, bool]) -> dict[Value, Value]:
    """Values that are another one where some conditions are known."""
    truths, same = dict(known), dict[Value, Value]()
    for node in nodes:
        if not isinstance(node, Op) or len(node.results) != 1:
            continue
        (result,) = node.results
        if dtype_of(result.type) == I1 and (number := constant_number(node)) is not None:
            truths[result] = bool(number)
        given = [truths.get(v) for v in node.operands]
        if node.name == "arith.select" and given[0] is not None:
            same[result] = node.operands[1 if given[0] else 2]
        elif node.name in ("arith.andi", "arith.ori"):
            deciding = node.name == "arith.ori"
            if deciding in given:
                truths[result] = deciding
            elif (not deciding) in given:
                same[result] = node.operands[given.index(not deciding) - 1]
        elif node.name == "arith.xori" and None not in given:
            truths[result] = given[0] != given[1]
        if result in same and same[result] in truths:
            truths[result] = truths[same[result]]
    return same


def _accessed(nodes: Iterable[Node], var: Var) -> int:
    """Bytes that an iteration of a loop accesses and the next one does not."""
    return sum(
        node.buffer.bytes_per_element
        for node in nodes
        if isinstance(node, IndirectAccess)
        or (isinstance(node, Access) and var in set(node.variables()))
    )
