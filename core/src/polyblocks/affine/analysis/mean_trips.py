"""How many iterations a loop with bounds has on average, over those of the loops around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from polyblocks.affine.expr import Div, Expr, Mod, Var
from polyblocks.affine.model import For

#: Iterations of the loops around, all together, that are all looked at, and of one of several.
ALL, ALL_OF_ONE = 128, 4
#: How many are looked at of a longer one whose bounds are not those of tiles.
SOME = 8
#: Loops around that are looked at, the nearest ones; others are where they begin.
NEAREST = 4


def mean_trips(loop: For, around: Sequence[For]) -> float:
    """Iterations of a loop for each time that it is run.

    Exact where all iterations of a loop around but the last one are alike, as in tiles, and where
    the iterations grow or shrink evenly, as in triangles.

    Args:
        loop: the loop.
        around: the loops of its nest that it is in, outer before inner. Those of the program around
            the nest follow from the bounds.
    """
    if not loop.bounded:
        return float(loop.var.extent)
    # A loop with bounds weighs how often those inside of it are run.
    *order, loop = _digits([*_of_program([*around, loop]), *around, loop])
    order = [outer for outer in order if outer.bounded or _used(outer.var, [*order, loop])]
    looked_at = [outer.var for outer in order if _used(outer.var, [*order, loop])]
    looked_at = looked_at[-NEAREST:]
    most = ALL if prod(var.extent for var in looked_at) <= ALL else ALL_OF_ONE
    trips, runs = _Count(loop, set(looked_at), most).within(order)
    return trips / runs if runs else 0.0


def _of_program(loops: Sequence[For]) -> list[For]:
    """Loops around the nest whose variables are in bounds."""
    own = {loop.var for loop in loops}
    variables = dict.fromkeys(v for one in loops for e in one.bounds for v in e.variables())
    return [For(var, []) for var in variables if var not in own]


def _used(var: Var, loops: Sequence[For]) -> bool:
    """Whether bounds of loops depend on a variable."""
    return any(expr.depends_on(var) for loop in loops for expr in loop.bounds)


def _digits(loops: list[For]) -> list[For]:
    """The loops with one for each digit of a variable, where bounds are of quotients and rests."""
    at = 0
    while at < len(loops):
        var = loops[at].var
        divisors = {
            atom.divisor
            for loop in loops
            for expr in loop.bounds
            for atom, _ in expr.terms
            if isinstance(atom, (Div, Mod)) and atom.dividend == Expr.of(var)
        }
        whole = [d for d in divisors if var.extent % d == 0 and not loops[at].bounded]
        if not whole:
            at += 1
            continue
        quotient, rest = Var(var.extent // min(whole)), Var(min(whole))
        value = {var: Expr.of(quotient) * min(whole) + rest}
        inner = [
            replace(
                loop,
                lower=tuple(e.substitute(value) for e in loop.lower),
                upper=tuple(e.substitute(value) for e in loop.upper),
            )
            for loop in loops[at + 1 :]
        ]
        loops = [*loops[:at], For(quotient, []), For(rest, []), *inner]
    return loops


class _Values(dict[Var, int]):
    """The values of variables; those that are not looked at have their first one."""

    def __missing__(self, var: Var) -> int:
        return 0


class _Count:
    """Counts the iterations of a loop.

    Args:
        loop: the loop.
        looked_at: variables of loops around whose values matter.
        most: iterations of one of these that are all looked at.
    """

    def __init__(self, loop: For, looked_at: set[Var], most: int) -> None:
        self._loop, self._looked_at, self._most = loop, looked_at, most
        self._values = _Values()

    def within(self, order: Sequence[For]) -> tuple[float, float]:
        """Iterations of the loop, and how often it is run, in all iterations of the loops around.

        Args:
            order: of these the ones that are left, outer before inner.
        """
        if not order:
            first, end = self._range(self._loop)
            return float(max(0, end - first)), 1.0
        outer, *inner = order
        first, end = self._range(outer)
        count = end - first
        if count <= 0:
            return 0.0, 0.0
        if outer.var not in self._looked_at:
            return _sum([self.within(inner)], count)

        def at(value: int) -> tuple[float, float]:
            self._values[outer.var] = value
            found = self.within(inner)
            del self._values[outer.var]
            return found

        if count <= self._most:
            return _sum([at(v) for v in range(first, end)], 1.0)
        alike = [at(first), at(first + count // 2), at(end - 2)]
        if alike[0] == alike[1] == alike[2]:
            return _sum([_sum(alike[:1], count - 1), at(end - 1)], 1.0)
        places = [first + round(k * (count - 1) / (SOME - 1)) for k in range(SOME)]
        return _sum([at(v) for v in places], count / SOME)

    def _range(self, loop: For) -> tuple[int, int]:
        """The first value of a loop's variable and the one after the last."""
        values = self._values
        return (
            max([0, *(expr.evaluate(values) for expr in loop.lower)]),
            min([loop.var.extent, *(expr.evaluate(values) for expr in loop.upper)]),
        )


def _sum(parts: list[tuple[float, float]], times: float) -> tuple[float, float]:
    return times * sum(p[0] for p in parts), times * sum(p[1] for p in parts)
