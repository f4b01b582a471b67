"""Where the buffers of one iteration of a group live."""

from __future__ import annotations

from collections.abc import Mapping

from polyblocks.affine.access import is_whole
from polyblocks.affine.cost.constants import RESERVED_REGISTERS
from polyblocks.affine.expr import Expr
from polyblocks.affine.gpu.mapping.barriers import same_iteration
from polyblocks.affine.gpu.mapping.contiguity import is_contiguous
from polyblocks.affine.gpu.plans.groups import DistributedLoop, GroupPlan, Place
from polyblocks.affine.model import (
    Access,
    AffineAccess,
    Alloca,
    AnyLoad,
    AnyStore,
    Buffer,
    For,
    IndirectAccess,
    Load,
    Node,
    walk,
)
from polyblocks.affine.tiles.contiguity import written_out
from polyblocks.occupancy import registers_for
from polyblocks.target import Multiprocessor

#: Largest buffer, in bytes, that every thread of a group may duplicate.
COPY_BYTES = 128
#: Bytes of all copies of a block together, at most.
COPIED_BYTES = 32 << 10


def place_buffers(
    plan: GroupPlan, chip: Multiprocessor, given: Mapping[Buffer, Place] | None = None
) -> None:
    """Fill ``plan.places`` and ``plan.held``.

    A buffer of a distributed iteration is the thread's. One of the whole group is private too if
    all its elements are stored by uniform code, which every thread runs, and registers can hold
    it: then every thread has a copy, and none waits for another. If every element is only touched
    by the thread whose iteration stores it, the threads keep their elements in registers. All
    others live in shared memory. ``given`` decides between the last two.
    """
    plan.places = {}
    uniform = list(plan.uniform())
    owned = {n.buffer for n in uniform if isinstance(n, Alloca)}
    for node in walk(plan.body):
        if isinstance(node, Alloca) and node.buffer not in owned:
            plan.places[node.buffer] = Place.PRIVATE
    by_threads = _stored_by_threads(uniform, plan) | _indexed_by_threads(uniform, plan)
    lives = _lives(plan)
    elements = [0] * len(uniform)
    # A result may take its operand's register: its live range begins half a node later.
    taken = [0] * (2 * len(uniform) + 2)
    room = registers_for(chip, plan.threads, 1) - RESERVED_REGISTERS
    for buffer in sorted(owned, key=lambda b: b.number):
        if plan.group == 1 or (buffer not in by_threads and buffer.nbytes <= COPY_BYTES):
            plan.places[buffer] = Place.PRIVATE
            continue
        per_thread = elements_per_thread(plan, uniform, buffer)
        words = per_thread * -(-buffer.bytes_per_element // 4)
        needed = words + (per_thread if _has_place(plan, buffer) else 0)
        first, last = lives.get(buffer, (0, -1))
        span = slice(2 * first + 1, max(2 * last, 2 * first + 1) + 1)
        together = max(elements[first : last + 1], default=0) + words
        fits = together <= chip.buffer_registers and max(taken[span]) + needed <= room
        wanted = (given or {}).get(buffer)
        if per_thread and (fits if wanted is None else wanted is Place.DISTRIBUTED_REGISTERS):
            elements[first : last + 1] = [n + words for n in elements[first : last + 1]]
            taken[span] = [n + needed for n in taken[span]]
            plan.places[buffer] = Place.DISTRIBUTED_REGISTERS
        else:
            plan.places[buffer] = Place.SHARED
    plan.held = max(taken, default=0)


def _has_place(plan: GroupPlan, buffer: Buffer) -> bool:
    """Whether each element that a thread keeps waits together with an address.

    It does if the iterations touch something else at a place of their own that no constant leads
    to from the iteration before.
    """
    for distributed in plan.distributed.values():
        accesses = [n for n in distributed.body if isinstance(n, AffineAccess)]
        if not any(n.buffer is buffer for n in accesses):
            continue
        changing = {v for v in distributed.order if v.extent > 1}
        for node in accesses:
            if node.buffer is buffer or is_contiguous(node, distributed.order):
                continue
            if len(changing) > 1 and changing <= {v for e in node.index for v in e.variables()}:
                return True
    return False


def _lives(plan: GroupPlan) -> dict[Buffer, tuple[int, int]]:
    """The first and the last node of uniform code that touch a buffer.

    Values that a loop accesses live as long as it runs: the next iteration may need them.
    """
    found: dict[Buffer, tuple[int, int]] = {}
    position = 0

    def visit(nodes: list[Node]) -> set[Buffer]:
        nonlocal position
        touched: set[Buffer] = set()
        for node in nodes:
            begin = position
            position += 1
            if isinstance(node, For) and node not in plan.distributed:
                here = visit(node.body)
            else:
                here = {n.buffer for n in walk([node]) if isinstance(n, Access)}
            for buffer in here:
                first, last = found.get(buffer, (begin, begin))
                found[buffer] = min(first, begin), max(last, position - 1)
            touched |= here
        return touched

    visit(plan.body)
    return found


def elements_per_thread(plan: GroupPlan, uniform: list[Node], buffer: Buffer) -> int:
    """Iterations of a thread that touch a buffer, if each element belongs to one thread; else 0."""
    first: tuple[tuple[Expr, ...], DistributedLoop] | None = None
    for node in uniform:
        distributed = plan.distributed.get(node) if isinstance(node, For) else None
        if distributed is None:
            if isinstance(node, Access) and node.buffer is buffer:
                return 0
            continue
        accesses = [n for n in walk([node]) if isinstance(n, Access) and n.buffer is buffer]
        if not accesses:
            continue
        if not _written_out(plan, distributed):
            return 0
        for access in accesses:
            if not isinstance(access, AffineAccess):
                return 0
            first = first or (access.index, distributed)
            if not same_iteration(*first, access.index, distributed):
                return 0
    return plan.iterations_per_thread(first[1]) if first is not None else 0


def _written_out(plan: GroupPlan, distributed: DistributedLoop) -> bool:
    """Whether the iterations of one thread may be written one after the other, without a loop."""
    per_thread = plan.iterations_per_thread(distributed)
    # A scan carries its running values from turn to turn in a loop.
    if distributed.scan or any(isinstance(n, For) for n in distributed.body):
        return False
    return per_thread <= written_out([len(distributed.body)])


def _stored_by_threads(uniform: list[Node], plan: GroupPlan) -> set[Buffer]:
    """Buffers that distributed iterations store to, or that are used at run-time indices."""
    found: set[Buffer] = set()
    for node in uniform:
        if isinstance(node, For) and node in plan.distributed:
            for inner in walk([node]):
                if isinstance(inner, AnyStore):
                    found.add(inner.buffer)
        elif isinstance(node, IndirectAccess):
            found.add(node.buffer)
    return found


def _indexed_by_threads(uniform: list[Node], plan: GroupPlan) -> set[Buffer]:
    """Buffers whose elements are picked by what differs from thread to thread.

    Registers have no indices: copies of such buffers would be in memory that no other thread sees.
    """
    return {
        node.buffer
        for loop in uniform
        if isinstance(loop, For) and loop in plan.distributed
        for node in walk([loop])
        if isinstance(node, AffineAccess)
        and {v for v in plan.distributed[loop].order if v.extent > 1} & set(node.variables())
    }


def same_for_all(plan: GroupPlan) -> list[Buffer]:
    """Buffers of the program that every group reads whole, whatever its iteration is."""
    nodes = list(walk(plan.body))
    written = {n.buffer.base for n in nodes if isinstance(n, AnyStore)}
    found: dict[Buffer, bool] = {}
    for node in nodes:
        if not isinstance(node, AnyLoad) or node.buffer in plan.places:
            continue
        whole = isinstance(node, Load) and _reads_all(node, plan)
        found[node.buffer] = found.get(node.buffer, True) and whole
    return [
        b
        for b, whole in found.items()
        if whole and b.base is b and b not in written and is_whole(b)
    ]


def _reads_all(node: Load, plan: GroupPlan) -> bool:
    """Whether the elements are the same in all outer iterations, and many are read in each."""
    variables = {v for e in node.index for v in e.variables()}
    if not variables or variables & set(plan.order) or any(v.value for v in variables):
        return False
    ends = zip((e.range() for e in node.index), node.buffer.shape, strict=True)
    return all((low, high) == (0, n - 1) for (low, high), n in ends)
