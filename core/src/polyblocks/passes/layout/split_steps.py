"""split-steps: rows are cut where places in them jump, and what is left counts on."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from polyblocks.affine.expr import Atom, Div, Expr, Var
from polyblocks.affine.model import For, Node, Sequence, clone, remove_dead, transform_indices, walk
from polyblocks.affine.steps import PERIODS, is_step
from polyblocks.affine.subnests import change_subnests, mark_tiles, parallel_shell
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class SplitStepsPass(NestPass):
    """Cut the innermost loop of a nest where quotients in its places change, if that is seldom.

    A row that is held at its ends is in order between them. Where a quotient changes every few
    elements, as in an enlarged image, a loop over these is put inside of one that counts them.

    Before::

        affine.for %x = 0 to 10 {
          %v = affine.load %a[%x - (%x + 9) floordiv 10 - (%x + 1) floordiv 10] ... }

    After::

        affine.for %x = 0 to 1 { %v = affine.load %a[0] ... }
        affine.for %x = 0 to 8 { %v = affine.load %a[%x] ... }
        affine.for %x = 0 to 1 { %v = affine.load %a[7] ... }
    """

    name: ClassVar[str] = "split-steps"
    #: Pieces of a loop, at most.
    pieces: int = 9
    #: Iterations for each element of a group, at least, for groups to be counted.
    least: int = 16

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Split in every nest and sub-nest."""
        for nest in sequence.nests():
            counts: list[int] = []

            def change(
                nodes: list[Node], around: list[For], counts: list[int] = counts
            ) -> list[Node] | None:
                del around
                return self._split(nodes, counts)

            if change_subnests(nest, change):
                context.decide(self.name, nest.name, "rows cut", loops=sum(counts))

    def _split(self, nodes: list[Node], counts: list[int]) -> list[Node] | None:
        loops, body = parallel_shell(nodes)
        if not loops or any(isinstance(n, For) for n in body):
            return None
        loop = loops[-1]
        if loop.level or loop.lanes or loop.unit or loop.tile:
            return None
        cut = self._cut(loop)
        if cut is None:
            return None
        new: list[Node] = []
        for piece in cut:
            new.extend(self._grouped(piece))
        if len(new) == 1 and new[0] is loop:
            return None
        counts.append(len(new))
        if len(loops) == 1:
            return new
        loops[-2].body = new
        loops[-2].tile = False
        mark_tiles(nodes)
        remove_dead(nodes)
        return nodes

    def _cut(self, loop: For) -> list[For] | None:
        """The loop in pieces in each of which its steps are constants; None if that is unknown."""
        places: dict[Expr, None] = {}
        steps = [a for a in _quotients(loop) if is_step(a)]
        for atom in steps:
            found = _changes(atom, loop.var)
            if found is None:
                return None
            places.update(dict.fromkeys(found))
        cuts = _sorted(list(places))
        if cuts is None or len(cuts) >= self.pieces:
            return None
        if not cuts:
            return [loop]
        if all(c.is_constant for c in cuts) and not loop.bounded:
            ends = [0, *(c.const for c in cuts), loop.var.extent]
            return [
                _part(loop, first, end - first)
                for first, end in itertools.pairwise(ends)
                if end > first
            ]
        found_pieces: list[For] = []
        for i in range(len(cuts) + 1):
            lower, upper = cuts[i - 1 : i] if i else [], cuts[i : i + 1]
            found_pieces.append(_bounded(loop, lower, upper, steps))
        return [piece for piece in found_pieces if piece.trips]

    def _grouped(self, loop: For) -> list[For]:
        """A loop over groups of elements with the same quotient, if there are any."""
        if loop.bounded:
            return [loop]
        periods = {
            a.divisor
            for a in _quotients(loop)
            if isinstance(a, Div) and 1 < a.divisor <= PERIODS and _turns(a, loop.var)
        }
        if len(periods) != 1:
            return [loop]
        (period,) = periods
        # A group begins where most quotients change.
        first = min(range(period), key=lambda k: (_inside(loop, k, period), k))
        count = (loop.var.extent - first) // period
        if count < self.least:
            return [loop]
        group, digit = Var(count), Var(period)
        place = Expr.of(group) * period + Expr.of(digit) + first
        body = clone(loop.body, {}, {loop.var: place})
        end = first + count * period
        parts = [_part(loop, 0, first)] if first else []
        parts.append(For(group, [For(digit, body)]))
        return [
            *parts,
            *([_part(loop, end, loop.var.extent - end)] if end < loop.var.extent else []),
        ]


def _quotients(loop: For) -> list[Atom]:
    """The quotients and remainders that a loop's variable is in, each once."""
    return list(
        dict.fromkeys(
            atom
            for node in walk(loop.body)
            if not isinstance(node, For)
            for expr in node.exprs
            for atom, _ in expr.terms
            if not isinstance(atom, Var) and loop.var in set(atom.dividend.variables())
        )
    )


def _changes(atom: Atom, var: Var) -> list[Expr] | None:
    """The values of a variable from which on a step has another value; None if not known."""
    assert isinstance(atom, Div)
    factor = atom.dividend.coefficient(var)
    if factor is None or factor <= 0:
        return None
    rest = atom.dividend - Expr(0, {var: factor})
    if factor != 1 and not rest.is_constant:
        return None
    low, high = (n // atom.divisor for n in atom.dividend.range())
    return [
        (Expr(value * atom.divisor + factor - 1) - rest) // factor
        for value in range(low + 1, high + 1)
    ]


def _sorted(places: list[Expr]) -> list[Expr] | None:
    """Places in order; None if that is not the same always."""
    if not places:
        return []
    apart = [p - places[0] for p in places]
    if not all(a.is_constant for a in apart):
        return None
    return [p for _, p in sorted(zip((a.const for a in apart), places, strict=True), key=_first)]


def _first(pair: tuple[int, Expr]) -> int:
    return pair[0]


def _part(loop: For, first: int, count: int) -> For:
    """A loop over some of the iterations."""
    part = Var(count)
    return For(part, clone(loop.body, {}, {loop.var: Expr.of(part) + first}))


def _bounded(loop: For, lower: list[Expr], upper: list[Expr], steps: list[Atom]) -> For:
    """A loop over the iterations between two places, in which steps are constants."""
    new = Var(loop.var.extent)
    body = clone(loop.body, {}, {loop.var: Expr.of(new)})
    values: dict[Atom, int] = {}
    for atom in steps:
        assert isinstance(atom, Div)
        moved = atom.dividend.substitute({loop.var: Expr.of(new)}) // atom.divisor
        low = atom.dividend.range()[0] // atom.divisor
        changes = _changes(atom, loop.var) or []
        passed = sum(any((c - b).range()[1] <= 0 for b in lower) for c in changes)
        values.update({a: low + passed for a, _ in moved.terms if a not in values})
    transform_indices(body, lambda e: _with(e, values))
    return replace(
        loop,
        var=new,
        body=body,
        lower=(*loop.lower, *lower),
        upper=(*loop.upper, *upper),
    )


def _with(expr: Expr, values: dict[Atom, int]) -> Expr:
    """An expression with some atoms replaced by numbers."""
    result = Expr(expr.const)
    for atom, factor in expr.terms:
        known = values.get(atom)
        result = result + (Expr(0, {atom: factor}) if known is None else Expr(known * factor))
    return result


def _turns(atom: Div, var: Var) -> bool:
    """Whether a quotient is of a variable and of multiples of the divisor."""
    rest = atom.dividend - Expr(atom.dividend.const)
    return rest == Expr.of(var)


def _inside(loop: For, first: int, period: int) -> int:
    """How many quotients change within groups that begin at a place."""
    return sum(
        isinstance(a, Div) and a.divisor == period and (a.dividend.const + first) % period != 0
        for a in _quotients(loop)
    )
