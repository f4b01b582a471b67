"""Parts of several loop nests that run together: one part of each in every block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isqrt, prod

from polyblocks.affine.analysis.parallel import is_parallel
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import For, Node, clone
from polyblocks.affine.subnests import parallel_shell


def part_counts(nodes: Sequence[Node]) -> set[int]:
    """Numbers of parts of equal size in which iterations of all these loops can be divided.

    One loop of each perfect nest is divided. 1 is always among them; a node that is no loop, or
    no parallel one, allows for no other number.
    """
    counts: set[int] | None = None
    for node in nodes:
        mine = {d for loop in _loops(node) for d in _divisors(loop.var.extent)}
        counts = mine if counts is None else counts & mine
    return (counts or set()) | {1}


def iterations(nodes: Sequence[Node]) -> int:
    """Iterations of the perfect nests, all together."""
    return sum(prod(loop.var.extent for loop in parallel_shell([node])[0]) for node in nodes)


def parts(nodes: Sequence[Node], count: int, part: Var) -> list[Node]:
    """One of ``count`` parts of the loops.

    Args:
        nodes: loops, see :func:`part_counts`.
        count: one of the numbers of parts.
        part: the number of the part.
    """
    if count == 1:
        return list(nodes)
    return [inner for node in nodes for inner in _part(node, count, part)]


def _part(node: Node, count: int, part: Var) -> list[Node]:
    shell, inside = parallel_shell([node])
    cut = next(loop for loop in _loops(node) if loop.var.extent % count == 0)
    inner = Var(cut.var.extent // count)
    at = Expr.of(part) * inner.extent + Expr.of(inner)
    body = clone(inside, {}, {cut.var: at})
    for loop in reversed(shell):
        body = [For(inner if loop is cut else loop.var, body, schedule=loop.schedule)]
    return body


def _loops(node: Node) -> Iterator[For]:
    """Parallel loops of a perfect nest without bounds, from the outside in."""
    shell, _ = parallel_shell([node])
    if not any(loop.bounded for loop in shell):
        yield from (loop for loop in shell if is_parallel(loop, [node]))


def _divisors(number: int) -> set[int]:
    small = {d for d in range(1, isqrt(number) + 1) if number % d == 0}
    return small | {number // d for d in small}
