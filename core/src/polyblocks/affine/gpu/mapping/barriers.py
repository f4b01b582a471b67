"""Where the threads of a block wait for each other: where one needs what another one did."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from polyblocks.affine.access import digits_of_whole
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.gpu.plans.groups import DistributedLoop, GroupPlan, Place, uniform_nodes
from polyblocks.affine.model import Access, AffineAccess, AnyStore, Buffer, For, Node, walk


@dataclass(frozen=True)
class Touch:
    """One access of memory that several threads see.

    Attributes:
        buffer: what is accessed.
        index: where; None if that is known at run time only.
        write: whether it stores.
        atomic: whether it reads and writes in one piece; it need not wait for another such one.
        distributed: the distributed loops that it is in; None for uniform code.
        inner: variables of loops inside of these.
    """

    buffer: Buffer
    index: tuple[Expr, ...] | None
    write: bool
    distributed: DistributedLoop | None
    inner: frozenset[Var] = frozenset()
    atomic: bool = False


def place_barriers(plan: GroupPlan) -> None:
    """Fill ``plan.barriers``: before which nodes of uniform code the block waits.

    Accesses since the last barrier are remembered; a node that touches what one of them touched
    gets a barrier, unless both only read or the same thread does both. The body of a loop is
    looked at twice, since what its end did is there at its beginning. A reduction waits by itself.
    """
    plan.barriers = set()
    if plan.group == 1:
        return
    _Walk(plan).nodes(plan.body, [])


class _Walk:
    def __init__(self, plan: GroupPlan) -> None:
        self.plan = plan
        self.outer = set(plan.order)
        nodes = list(walk(plan.body))
        self.written = {n.buffer.base for n in nodes if isinstance(n, AnyStore)}

    def nodes(self, nodes: list[Node], pending: list[Touch]) -> list[Touch]:
        """Visit nodes in order; returns what is not yet seen by all threads afterwards."""
        for node in nodes:
            pending = self._node(node, pending)
        return pending

    def _node(self, node: Node, pending: list[Touch]) -> list[Touch]:
        plan = self.plan
        if isinstance(node, For) and node not in plan.distributed:
            # One that may have no iteration waits for nothing: what is needed in it is waited for
            # before it, and what was pending stays so.
            if node.bounded and any(self._meet(a, b) for b in self._inside(node) for a in pending):
                plan.barriers.add(node)
                pending = []
            kept = pending if node.bounded else []
            for _ in range(2):
                pending = self.nodes(node.body, list(pending))
            return list(dict.fromkeys([*kept, *pending]))
        touches = list(self._touches(node))
        if node in plan.barriers or any(self._meet(a, b) for a in pending for b in touches):
            plan.barriers.add(node)
            pending = []
        distributed = plan.distributed.get(node) if isinstance(node, For) else None
        if distributed is not None and distributed.combiners and waits(plan):
            # The threads wait for each other's parts after the loop; in a scan, within each turn.
            return touches if distributed.scan else []
        return [*pending, *touches]

    def _inside(self, loop: For) -> Iterator[Touch]:
        """All accesses in a loop that is not distributed."""
        for node in uniform_nodes(loop.body, self.plan.distributed):
            if not isinstance(node, For) or node in self.plan.distributed:
                yield from self._touches(node)

    def _touches(self, node: Node) -> Iterator[Touch]:
        if isinstance(node, For):
            distributed = self.plan.distributed[node]
            own = set(distributed.loops)
            inner = {n.var for n in walk([node]) if isinstance(n, For) and n not in own}
            for child in walk([node]):
                for touch in self._access(child):
                    yield replace(touch, distributed=distributed, inner=frozenset(inner))
        else:
            yield from self._access(node)

    def _access(self, node: Node) -> Iterator[Touch]:
        if not isinstance(node, Access):
            return
        buffer = node.buffer
        if (
            self.plan.places.get(buffer) in (Place.PRIVATE, Place.DISTRIBUTED_REGISTERS)
            or buffer.base not in self.written
        ):
            return
        index = node.index if isinstance(node, AffineAccess) else None
        yield Touch(buffer, index, node.writes, None, atomic=node.atomic)

    def _meet(self, a: Touch, b: Touch) -> bool:
        """Whether two threads may touch one element by these accesses, at least one storing."""
        if not (a.write or b.write) or a.buffer.base is not b.buffer.base:
            return False
        if a.distributed is None and b.distributed is None and a.write and b.write:
            # One thread stores for all.
            return False
        if a.atomic and b.atomic:
            return False
        return not _same_thread(a, b) and not self._never_overlap(a, b)

    def _never_overlap(self, a: Touch, b: Touch) -> bool:
        """Whether the two never touch the same element, whatever iterations they are in."""
        if a.buffer is not b.buffer or a.index is None or b.index is None:
            return False
        for mine, theirs in zip(a.index, b.index, strict=True):
            # Only the outer iteration is the same for both.
            fresh = {v: Expr.of(Var(v.extent)) for v in theirs.variables() if v not in self.outer}
            low, high = (mine - theirs.substitute(fresh)).range()
            if low > 0 or high < 0:
                return True
        return False


def waits(plan: GroupPlan) -> bool:
    """Whether joining a reduction's parts goes through shared memory, with a barrier."""
    return plan.strided and plan.threads > plan.warp or plan.group > plan.warp


def _same_thread(a: Touch, b: Touch) -> bool:
    """Whether an element is touched by the same thread both times."""
    if a.buffer is not b.buffer or a.index is None or b.index is None:
        return False
    if a.distributed is None or b.distributed is None or a.inner or b.inner:
        return False
    return same_iteration(a.index, a.distributed, b.index, b.distributed)


def same_iteration(
    mine: tuple[Expr, ...],
    first: DistributedLoop,
    theirs: tuple[Expr, ...],
    second: DistributedLoop,
) -> bool:
    """Whether iterations of two distributed loops that touch one element are of one thread: they
    have the same number, and threads take as many at once."""
    if (first.trips, first.width) != (second.trips, second.width):
        return False
    number = Expr.of(Var(first.trips))
    if _by_number(mine, first, number) != _by_number(theirs, second, number):
        return False
    return one_to_one(mine, first.order) or one_to_one(theirs, second.order)


def _by_number(index: tuple[Expr, ...], distributed: DistributedLoop, number: Expr) -> list[Expr]:
    """An index as a function of the number of the iteration."""
    values: dict[Var, Expr] = {}
    stride = 1
    for var, extent in zip(distributed.order[::-1], distributed.counted[::-1], strict=True):
        values[var] = (number // stride) % extent
        stride *= extent
    if distributed.lead:
        values[distributed.order[-1]] = values[distributed.order[-1]] - distributed.lead
    return [digits_of_whole(e.substitute(values)) for e in index]


def one_to_one(index: tuple[Expr, ...], variables: list[Var]) -> bool:
    """Whether equal indices mean equal values of all the variables, whatever else varies.

    Sufficient: one after the other has a factor larger than all that is not yet known can vary.
    """
    known: set[Var] = set()
    missing = [v for v in variables if v.extent > 1]
    while missing:
        found = next((v for v in missing if any(_tells(e, v, known) for e in index)), None)
        if found is None:
            return False
        known.add(found)
        missing.remove(found)
    return True


def _tells(expr: Expr, var: Var, known: set[Var]) -> bool:
    factor = expr.coefficient(var)
    if not factor:
        return False
    rest = {
        atom: c for atom, c in expr.terms if atom is not var and not (_variables(atom) <= known)
    }
    low, high = Expr(0, rest).range()
    return abs(factor) > high - low


def _variables(atom: object) -> set[Var]:
    return {atom} if isinstance(atom, Var) else set(atom.dividend.variables())  # type: ignore[attr-defined]
