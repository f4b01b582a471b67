"""In which order of its loops a body goes through memory."""

from __future__ import annotations

from collections.abc import Iterable

from polyblocks.affine.access import stride_along
from polyblocks.affine.expr import Var
from polyblocks.affine.model import AffineAccess, For, Node

#: Stride from thread to thread -> of what transactions move, the part that threads ask for.
_OF_THREADS = {0: 1.0, 1: 1.0, 2: 0.5, 3: 1 / 3, 4: 0.25}


def fastest_last(variables: list[Var], body: list[Node], by_threads: bool = False) -> list[Var]:
    """The variables, with the one along which most accesses are in order last.

    Loops keep their order otherwise. Accesses of buffers that live in one iteration do not count:
    their memory has no transactions.

    Args:
        variables: of the loops, from the outside in.
        body: of the innermost one.
        by_threads: whether neighbouring threads take neighbouring values of the last one: what
            they all read is one transaction as well, and of pairs that each reads it has half.
    """
    if len(variables) < 2:
        return list(variables)
    strides = _OF_THREADS if by_threads else {1: 1.0}
    score = {v: _bytes_in_order(body, v, strides) for v in variables}
    # Ties go to the inner loop.
    best = max(reversed(variables), key=lambda v: score[v])
    return [*(v for v in variables if v is not best), best]


def _bytes_in_order(body: Iterable[Node], var: Var, strides: dict[int, float]) -> float:
    """How many bytes an iteration accesses where ``var`` moves by strides that have a weight."""
    total = 0.0
    for node, times in _weighted(body, 1.0):
        if node.buffer.kind == "local":
            continue
        stride = stride_along(node.buffer, node.index, var)
        if stride is not None:
            total += times * node.buffer.bytes_per_element * strides.get(stride, 0.0)
    return total


def _weighted(nodes: Iterable[Node], times: float) -> Iterable[tuple[AffineAccess, float]]:
    """Affine accesses with how often one iteration does them."""
    for node in nodes:
        if isinstance(node, AffineAccess):
            yield node, times
        elif isinstance(node, For):
            yield from _weighted(node.body, times * max(node.trips, 1))
