"""Which loops of an iteration the threads of a group share, and in which order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from itertools import pairwise
from math import prod

from polyblocks.affine import operation_cost as cost
from polyblocks.affine.analysis.access_order import fastest_last
from polyblocks.affine.analysis.parallel import is_parallel
from polyblocks.affine.analysis.reductions import ReductionNest, identity
from polyblocks.affine.cost.constants import JOIN_OPERATIONS
from polyblocks.affine.gpu.plans.groups import DistributedLoop
from polyblocks.affine.model import Check, For, IndirectStore, Node, walk
from polyblocks.affine.vectors.choices import Choice
from polyblocks.affine.vectors.reduction_vectors import IDEMPOTENT
from polyblocks.affine.vectors.scan_vectors import scan_combiners


def outer_loops(body: list[Node]) -> tuple[list[For], list[Node]]:
    """The outermost independent loops, nested perfectly, and what is in them."""
    whole = body
    loops: list[For] = []
    while len(body) == 1 and isinstance(body[0], For) and not body[0].inits:
        loop = body[0]
        if loop.bounded or not is_parallel(loop, whole):
            break
        loops.append(loop)
        body = loop.body
    return loops, body


class ThreadDistribution:
    """Which loops of a body the threads of a group share, for groups of any size."""

    def __init__(self, body: list[Node]) -> None:
        self.body = body
        # Whether a loop can be distributed does not depend on the group.
        self._could = cache(lambda loop: _shared(loop, body))

    def of(self, group: int, scans: bool = True) -> dict[For, DistributedLoop]:
        """The loops that ``group`` threads share, by the outermost; with ``scans``, scans too."""
        found: dict[For, DistributedLoop] = {}
        if group > 1:
            self._visit(self.body, group, found)
        # Each answer may be given pitches of its own.
        return {loop: replace(s) for loop, s in found.items() if scans or not s.scan}

    def whole(self, loop: For) -> DistributedLoop | None:
        """A loop, with those nested perfectly in it, as one that threads share; None if not."""
        found = self._could(loop)
        return None if found is None else replace(found)

    def _visit(self, nodes: list[Node], group: int, found: dict[For, DistributedLoop]) -> None:
        for node in nodes:
            if not isinstance(node, For):
                continue
            distributed = self._could(node)
            if distributed is not None and not self._better_inside(distributed, group):
                found[node] = distributed
            else:
                self._visit(node.body, group, found)

    def _better_inside(self, distributed: DistributedLoop, group: int) -> bool:
        """Whether it is quicker to share a loop in the body, one iteration after the other."""
        inner: dict[For, DistributedLoop] = {}
        self._visit(distributed.body, group, inner)
        if not inner:
            return False
        outside = -(-distributed.trips // group) * cost.work(distributed.body)
        rest = cost.work(distributed.body) - sum(f.trips * cost.work(f.body) for f in inner)
        inside = rest + sum(
            -(-s.trips // group) * cost.work(s.body) + (JOIN_OPERATIONS if s.combiners else 0)
            for s in inner.values()
        )
        return distributed.trips * inside < outside


def _shared(loop: For, whole: list[Node]) -> DistributedLoop | None:
    """The loop, with those nested perfectly in it, as one that threads share; None if it cannot."""
    if loop.inits:
        return _reduction(loop) or _scan(loop)
    loops: list[For] = []
    body: list[Node] = [loop]
    while len(body) == 1 and isinstance(body[0], For) and not body[0].inits:
        if not is_parallel(body[0], whole):
            break
        loops.append(body[0])
        body = body[0].body
    if not loops:
        return None
    return DistributedLoop(loops, fastest_last([f.var for f in loops], body, True))


def chain_of(loop: For) -> list[For]:
    """A loop that carries values with the loops in it that do nothing but carry them on."""
    chain = [loop]
    while len(chain[-1].body) == 1 and isinstance(chain[-1].body[0], For):
        inner = chain[-1].body[0]
        if inner.inits != chain[-1].arguments or chain[-1].yields != inner.results:
            break
        chain.append(inner)
    return chain


def _reduction(loop: For) -> DistributedLoop | None:
    chain = chain_of(loop)
    combiners = ReductionNest([], [], chain, chain[-1].body, []).combiners()
    if combiners is None:
        return None
    for op in combiners:
        if op.name not in IDEMPOTENT and identity(op.name, op.results[0].type) is None:
            return None
    # No iteration may access an element that another one stores.
    bare = [For(f.var, f.body, lower=f.lower, upper=f.upper) for f in chain]
    for outer, inner_loop in pairwise(bare):
        outer.body = [inner_loop]
    if not all(is_parallel(f, [bare[0]]) for f in bare):
        return None
    return DistributedLoop(
        chain, fastest_last([f.var for f in chain], chain[-1].body, True), combiners
    )


def _scan(loop: For) -> DistributedLoop | None:
    """A loop that uses its running values; each thread scans one of neighbouring iterations."""
    if any(isinstance(n, (For, Check, IndirectStore)) for n in loop.body):
        return None
    combiners, choice = scan_combiners(loop), None
    if combiners is None:
        # Threads behind the end do the last iteration again, and there has to be one.
        choice = None if loop.bounded else Choice.of(loop)
        if choice is None:
            return None
        combiners = choice.selections
    elif any(identity(op.name, op.results[0].type) is None for op in combiners):
        return None
    bare = For(loop.var, loop.body, lower=loop.lower, upper=loop.upper)
    if not is_parallel(bare, [bare]):
        return None
    return DistributedLoop([loop], [loop.var], combiners, scan=True, choice=choice)


def trips(loops: Iterable[For]) -> int:
    """Iterations of nested loops together."""
    return prod(loop.var.extent for loop in loops)


def has_loops(nodes: list[Node]) -> bool:
    """Whether there is a loop in these nodes."""
    return any(isinstance(n, For) for n in walk(nodes))
