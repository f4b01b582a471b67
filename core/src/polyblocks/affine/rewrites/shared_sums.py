"""Sums that have terms in common share partial sums of them; so do maxima and minima.

Several sums of a body are a matrix: a row for each sum, a column for each term, the factors in it.
Columns that are multiples of each other become one: a partial sum, computed once and used by all
sums that have it. Common parts of neighbouring filter windows are such columns: rows of a
box, rows of a separable filter, differences of pairs.

Maxima share pairs: the one that most of them have becomes one term of all of these, and so on.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from polyblocks.affine.model import Node, Op, Value, remove_dead, replace_values
from polyblocks.affine.ops import Ops, has_flag

#: A term, and how often a sum has it.
Terms = dict[Value, float]


def share_sums(nodes: list[Node]) -> bool:
    """Let the sums of straight-line code share what is cheaper shared; whether any do.

    Only sums whose order is free: additions and products by constants that are marked so. A term
    with a factor of 0 stays, since it may be infinite or no number.

    Args:
        nodes: what ends in stores; changed in place.
    """
    sums = _Sums(nodes).found
    # Those of one filter have the same factors in the same order; its transpose has another order.
    ways = [_shared(sums, tuple), _shared(sums, lambda factors: tuple(sorted(factors)))]
    found = max(ways, key=_saved)
    if not found:
        return False
    writer = _Writer()
    for node in nodes:
        if isinstance(node, Op) and node in found:
            writer.sum(node, *found[node])
        else:
            writer.out.append(node)
    nodes[:] = writer.out
    replace_values(nodes, writer.same)
    remove_dead(nodes)
    return True


#: Operations that take the larger or smaller one, and the constant that changes nothing.
_EXTREMES: dict[str, float | None] = {
    "arith.maximumf": -math.inf,
    "arith.minimumf": math.inf,
    "arith.maxsi": None,
    "arith.minsi": None,
    "arith.maxui": None,
    "arith.minui": None,
}


def share_extremes(nodes: list[Node]) -> bool:
    """Let maxima, and minima, of straight-line code share those of pairs; whether any do.

    Of floating-point numbers only those that may be either zero where both are: their order is
    free, and NaN comes through in any.

    Args:
        nodes: what ends in stores; changed in place.
    """
    if not any(isinstance(node, Op) and _is_extreme(node) for node in nodes):
        return False
    makers = {n.results[0]: n for n in nodes if isinstance(n, Op) and len(n.results) == 1}
    numbers = _numbers(makers)
    uses = Counter(v for n in nodes for v in n.uses)
    families: dict[tuple[Any, ...], dict[Op, list[Value]]] = {}
    inside: set[Value] = set()
    for node in reversed(nodes):
        if isinstance(node, Op) and _is_extreme(node) and node.results[0] not in inside:
            kind = (node.name, node.results[0].type, str(node.attributes.get("fastmath", "")))
            terms = _terms_of_extreme(node, makers, numbers, uses, inside)
            families.setdefault(kind, {})[node] = terms
    before: dict[Op, list[Op]] = {}
    for family in families.values():
        _share_pairs(family, before)
    if not before:
        return False
    written: list[Node] = []
    for node in nodes:
        if isinstance(node, Op) and node in before:
            written += before[node]
        written.append(node)
    nodes[:] = written
    remove_dead(nodes)
    return True


def _is_extreme(op: Op) -> bool:
    if op.name not in _EXTREMES:
        return False
    return _EXTREMES[op.name] is None or has_flag(op, "nsz")


def _terms_of_extreme(
    root: Op,
    makers: dict[Value, Op],
    numbers: dict[Value, float],
    uses: Counter[Value],
    inside: set[Value],
) -> list[Value]:
    """The distinct operands of a maximum, through equal operations with no other use."""
    terms: dict[Value, None] = {}
    pending = list(reversed(root.operands))
    while pending:
        value = pending.pop()
        op = makers.get(value)
        alike = op is not None and (op.name, op.attributes) == (root.name, root.attributes)
        if op is not None and alike and uses[value] == 1:
            inside.add(value)
            pending += reversed(op.operands)
            continue
        if value not in numbers or numbers[value] != _EXTREMES[root.name]:
            terms[value] = None
    return list(terms)


def _pairs(terms: list[Value]) -> Iterable[tuple[Value, ...]]:
    """All pairs, the same two always in the same order."""
    return combinations(sorted(terms, key=lambda value: value.number), 2)


def _share_pairs(family: dict[Op, list[Value]], before: dict[Op, list[Op]]) -> None:
    """Rewrite maxima, the last one of the code first, with what comes before each of them."""
    first_root: dict[Value, Op] = {}
    made: dict[Value, Op] = {}
    left = dict(reversed(family.items()))
    shared: set[Op] = set()
    while True:
        counts = Counter(pair for terms in left.values() for pair in _pairs(terms))
        pair, count = max(counts.items(), key=lambda item: item[1], default=((), 0))
        if count < 2:
            break
        having = [root for root, terms in left.items() if set(pair) <= set(terms)]
        like = having[0]
        value = Value(like.results[0].type)
        made[value] = Op(like.name, list(pair), like.attributes, [value], like.location)
        first_root[value] = like
        for root in having:
            terms = left[root]
            terms[terms.index(pair[0])] = value
            terms.remove(pair[1])
        shared |= set(having)
    for value, op in made.items():
        before.setdefault(first_root[value], []).append(op)
    for root in shared:
        *others, last = left[root]
        if not others:
            # The root is the pair itself.
            root.operands = list(made[last].operands)
            continue
        total, *others = others
        ops = before.setdefault(root, [])
        for term in others:
            new = Value(root.results[0].type)
            ops.append(Op(root.name, [total, term], root.attributes, [new], root.location))
            total = new
        root.operands = [total, last]


@dataclass(eq=False)
class _Partial:
    """Terms that the same sums have in the same proportions; the first one's is 1.

    ``value`` is what they are together, where that has been computed.
    """

    terms: Terms
    value: Value | None = None

    @property
    def first(self) -> Value:
        """The term by which sums say how often they have it."""
        return next(iter(self.terms))


#: The partial sums that each sum has, by their terms, besides all of its terms.
_Shared = dict[Node, tuple[Terms, dict[Value, _Partial]]]


def _shared(
    sums: list[tuple[Op, Terms]], family_of: Callable[[Iterable[float]], tuple[float, ...]]
) -> _Shared:
    """Partial sums within families of sums that are alike."""
    families: dict[tuple[float, ...], list[tuple[Op, Terms]]] = {}
    for root, terms in sums:
        families.setdefault(family_of(terms.values()), []).append((root, terms))
    found: _Shared = {}
    for family in families.values():
        groups = _groups([terms for _, terms in family])
        inside = {value: partial for partial in groups for value in partial.terms}
        if inside:
            found.update((root, (terms, inside)) for root, terms in family)
    return found


def _saved(found: _Shared) -> int:
    """Additions that partial sums save."""
    partials = {id(p): p for _, inside in found.values() for p in inside.values()}
    saved = -sum(len(p.terms) - 1 for p in partials.values())
    for terms, inside in found.values():
        saved += sum(v in inside and v is not inside[v].first for v in terms)
    return saved


class _Sums:
    """The sums of straight-line code, each as the last addition with all terms.

    An addition that only another one uses is a part of that.
    """

    def __init__(self, nodes: list[Node]) -> None:
        self.makers = {n.results[0]: n for n in nodes if isinstance(n, Op) and len(n.results) == 1}
        self.numbers = _numbers(self.makers)
        self.uses = Counter(v for n in nodes for v in n.uses)
        self.inside: set[Value] = set()
        self.found: list[tuple[Op, Terms]] = []
        for node in reversed(nodes):
            if isinstance(node, Op) and _adds(node) and node.results[0] not in self.inside:
                terms: Terms = {}
                self._take(node.results[0], 1.0, terms, root=True)
                if len(terms) > 1:
                    self.found.append((node, terms))
        self.found.reverse()

    def _take(self, value: Value, factor: float, terms: Terms, root: bool = False) -> None:
        op = self.makers.get(value)
        if op is not None and _is_free(op):
            known = [self.numbers.get(v) for v in op.operands]
            alone = root or self.uses[value] == 1 or 0.0 in known
            if _adds(op) and alone:
                self.inside.add(value)
                sign = -1.0 if op.name == "arith.subf" else 1.0
                self._take(op.operands[0], factor, terms)
                self._take(op.operands[1], sign * factor, terms)
                return
            if op.name == "arith.mulf" and known.count(None) == 1:
                (number,) = (k for k in known if k is not None)
                self._take(op.operands[known.index(None)], number * factor, terms)
                return
        if self.numbers.get(value) != 0.0:
            terms[value] = terms.get(value, 0.0) + factor


def _numbers(makers: dict[Value, Op]) -> dict[Value, float]:
    """The values that are floating-point constants."""
    from polyblocks.mlir import ir

    constants = {v: n.attributes["value"] for v, n in makers.items() if n.name == "arith.constant"}
    return {v: a.value for v, a in constants.items() if isinstance(a, ir.FloatAttr)}


def _is_free(op: Op) -> bool:
    """Whether the order in which it is done with others is free."""
    return has_flag(op, "reassoc")


def _adds(op: Op) -> bool:
    return op.name in ("arith.addf", "arith.subf") and _is_free(op)


def _groups(sums: list[Terms]) -> list[_Partial]:
    """The partial sums of some sums; no two have a term in common."""
    columns: dict[Value, dict[int, float]] = {}
    for number, terms in enumerate(sums):
        for value, factor in terms.items():
            columns.setdefault(value, {})[number] = factor
    found: dict[tuple[Any, ...], Terms] = {}
    zeros: dict[tuple[Any, ...], list[Value]] = {}
    for value, column in columns.items():
        unit = next((factor for factor in column.values() if factor), None)
        if len(column) < 2:
            continue
        if unit is None:
            zeros.setdefault((value.type, *column), []).append(value)
            continue
        shape = tuple((number, factor / unit) for number, factor in column.items())
        found.setdefault((value.type, *shape), {})[value] = unit
    for (type_, *numbers), values in zeros.items():
        # Nothing times a term is part of whatever the same sums have.
        at = [key for key in found if key[0] == type_ and [n for n, _ in key[1:]] == numbers]
        if at:
            found[at[0]].update(dict.fromkeys(values, 0.0))
    groups = []
    for group in found.values():
        if len(group) > 1:
            unit = next(iter(group.values()))
            groups.append(_Partial({value: factor / unit for value, factor in group.items()}))
    return groups


@dataclass
class _Writer:
    """Code in which sums use partial sums.

    Attributes:
        same: sums that are just a partial one.
        out: the code so far.
    """

    same: dict[Value, Value] = field(default_factory=dict)
    out: list[Node] = field(default_factory=list)

    def sum(self, root: Op, terms: Terms, inside: dict[Value, _Partial]) -> None:
        """Append a sum, with what it needs of the partial ones that its terms are in."""
        left: Terms = {}
        for value, factor in terms.items():
            partial = inside.get(value)
            if partial is None:
                left[value] = factor
            elif value is partial.first:
                if partial.value is None:
                    partial.value = Value(value.type)
                    self._add(partial.terms, root, partial.value)
                left[partial.value] = factor
        self._add(left, root, root.results[0])

    def _add(self, terms: Terms, like: Op, result: Value) -> None:
        """Append the additions of some terms, which give the result."""
        total: Value | None = None
        for number, (value, factor) in enumerate(
            sorted(terms.items(), key=lambda term: term[1] != 1.0)
        ):
            new = result if number == len(terms) - 1 else Value(result.type)
            if total is None:
                if factor != 1.0:
                    value = self._scaled(value, factor, like, new)
                elif new is result:
                    self.same[result] = value
                total = value
                continue
            name = "arith.addf"
            if factor == -1.0:
                name = "arith.subf"
            elif factor != 1.0:
                value = self._scaled(value, factor, like, Value(value.type))
            self.out.append(Op(name, [total, value], like.attributes, [new], like.location))
            total = new

    def _scaled(self, value: Value, factor: float, like: Op, result: Value) -> Value:
        factors = [value, Ops(self.out).constant(factor, value.type)]
        self.out.append(Op("arith.mulf", factors, like.attributes, [result], like.location))
        return result
