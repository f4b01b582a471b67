"""In which order of its loops a body goes through memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from polyblocks.affine.access import stride_along
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import Buffer, For, Load, Node, Store, Value

#: The code that makes the element at an index, and its value.
MovedTo = Callable[[tuple[Expr, ...]], tuple[list[Node], Value]]


def fastest_last(variables: list[Var], body: list[Node]) -> list[Var]:
    """The variables, with the one along which most accesses are in order last.

    Loops keep their order otherwise. Accesses of buffers that live in one iteration do not count:
    their memory has no transactions.
    """
    if len(variables) < 2:
        return list(variables)
    score = {v: _bytes_in_order(body, v) for v in variables}
    # Ties go to the inner loop.
    best = max(reversed(variables), key=lambda v: score[v])
    return [*(v for v in variables if v is not best), best]


def stays_in_order(producer: list[Node], consumer: list[Node], moved: MovedTo, of: Buffer) -> bool:
    """Whether what a producer loads in order is in order as well where a consumer computes it.

    Args:
        producer: loops around straight-line code.
        consumer: loads what that makes.
        moved: the producer's code at an index of it.
        of: what it makes.
    """
    mine = _loads_inside(producer, None)
    if not any(var is not None and _is_in_order(load, var) for load, var in mine):
        return True
    for load, var in _loads_inside(consumer, None):
        if load.buffer is not of or var is None:
            continue
        for node in moved(load.index)[0]:
            if isinstance(node, Load) and stride_along(node.buffer, node.index, var) not in (0, 1):
                return False
    return True


def _is_in_order(load: Load, var: Var) -> bool:
    return stride_along(load.buffer, load.index, var) == 1


def _loads_inside(nodes: Iterable[Node], var: Var | None) -> Iterable[tuple[Load, Var | None]]:
    """Loads, each with the variable of the innermost loop around it."""
    for node in nodes:
        if isinstance(node, Load):
            yield node, var
        elif isinstance(node, For):
            yield from _loads_inside(node.body, node.var)


def _bytes_in_order(body: Iterable[Node], var: Var) -> float:
    """How many bytes the accesses that move by one element with ``var`` move, by iteration."""
    total = 0.0
    for node, times in _weighted(body, 1.0):
        if node.buffer.kind == "local":
            continue
        if stride_along(node.buffer, node.index, var) == 1:
            total += times * node.buffer.bytes_per_element
    return total


def _weighted(nodes: Iterable[Node], times: float) -> Iterable[tuple[Load | Store, float]]:
    """Affine accesses with how often one iteration does them."""
    for node in nodes:
        if isinstance(node, (Load, Store)):
            yield node, times
        elif isinstance(node, For):
            yield from _weighted(node.body, times * max(node.trips, 1))
