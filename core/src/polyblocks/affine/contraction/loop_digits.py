"""Numbers of iterations as digits: the loops that count them."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import For, Node

#: Parts of a vector at most for which results that move are stored: 4 of 16 lanes are worth it.
PARTS = 4


def counted(
    extents: list[int], size: int, upper: tuple[Expr, ...], shortest: int | None = None
) -> tuple[Expr, Callable[[list[Node]], list[Node]]]:
    """A number from 0 to ``size`` as the loops that it stands for count it.

    Args:
        extents: of these loops, the fastest one last.
        size: all of their iterations together, or as many as a whole number of the fastest
            ones have; otherwise it is counted by one loop.
        upper: bounds of the number; multiples of these as well.
        shortest: the least iterations of a part of the fastest loop, where ``size`` has no whole
            number of that; None: no parts.

    Returns:
        The number, and what puts the loops around code.
    """
    inside = 1
    variables: list[Var] = []
    for extent in reversed(extents):
        if size % (inside * extent):
            part = gcd(size, extent)
            if inside == 1 and shortest is not None and part >= shortest:
                inside, variables = part, [Var(part)]
            break
        inside *= extent
        variables.insert(0, Var(extent))
    loops: list[tuple[Var, tuple[Expr, ...]]] = [(v, ()) for v in variables if v.extent > 1]
    if size > inside or upper:
        loops.insert(0, (Var(size // inside), tuple(e // inside for e in upper)))
    number, step = Expr(0), 1
    for var, _ in reversed(loops):
        number = number + Expr.of(var) * step
        step *= var.extent

    def around(body: list[Node]) -> list[Node]:
        for var, ends in reversed(loops):
            body = [For(var, body, upper=ends)]
        return body

    return number, around
