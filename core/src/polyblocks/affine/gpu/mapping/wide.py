"""Wide accesses: a thread does several neighbouring iterations, with one access for all of them."""

from __future__ import annotations

from math import gcd

from polyblocks.affine.access import address, is_whole
from polyblocks.affine.element import dtype_of
from polyblocks.affine.expr import Var
from polyblocks.affine.gpu.mapping.contiguity import is_contiguous, offset
from polyblocks.affine.gpu.plans.groups import DistributedLoop, GroupPlan
from polyblocks.affine.model import (
    Access,
    AffineAccess,
    Alloca,
    Buffer,
    Load,
    Node,
    Op,
    walk,
)
from polyblocks.affine.subnests import is_affine_code
from polyblocks.target import Multiprocessor


def widest(plan: GroupPlan, chip: Multiprocessor) -> int:
    """Iterations of a plan of single threads that one access can be for; 1 if none can."""
    if plan.group != 1 or not plan.order:
        return 1
    if any(isinstance(n, Access) and n.buffer in plan.places for n in plan.body):
        return 1
    last = plan.order[-1]
    # The narrowest elements in memory fill an access, others take several.
    sizes = _sizes(plan.body, last)
    widest_access = chip.access_bits // 8 // min(sizes, default=1)
    if is_one_walk(plan):
        return gcd(widest_access, *(offset(n, plan.order).const for n in _accesses(plan.body)))
    return min(_most(plan.body, last, chip), widest_access) if sizes else 1


def is_one_walk(plan: GroupPlan) -> bool:
    """Whether all accesses go through memory as the outer iterations are counted, one by one."""
    order = plan.order
    for node in plan.body:
        if isinstance(node, AffineAccess):
            if not is_whole(node.buffer) or not (is_wide(node, order[-1]) or _is_same(node, order)):
                return False
            if not _is_same(node, order) and len(order) > 1 and not is_contiguous(node, order):
                return False
        elif not isinstance(node, Op):
            return False
    return any(is_wide(node, order[-1]) for node in _accesses(plan.body))


def _is_same(node: AffineAccess, order: list[Var]) -> bool:
    """Whether all iterations load the same element."""
    return (
        isinstance(node, Load)
        and not node.where
        and not ({v for e in node.index for v in e.variables()} & set(order))
    )


def _accesses(body: list[Node]) -> list[AffineAccess]:
    return [n for n in body if isinstance(n, AffineAccess)]


def _most(body: list[Node], var: Var, chip: Multiprocessor) -> int:
    """Values of ``var`` whose accesses are all contiguous, or of one common element.

    They begin at multiples of as many elements where the buffers do.
    """
    if not is_affine_code(body, Alloca):
        return 1
    width = gcd(chip.access_bits // 8, var.extent)
    for node in _accesses(body):
        if node.where or not is_whole(node.buffer):
            return 1
        place = address(node.buffer, node.index)
        if place.coefficient(var) == 0:
            continue
        if not is_wide(node, var):
            return 1
        width = gcd(width, place.const, *(c for atom, c in place.terms if atom is not var))
    return width


def _sizes(body: list[Node], var: Var) -> set[int]:
    """Bytes of the elements of wide accesses to the memory of the program."""
    return {
        n.buffer.bytes_per_element
        for n in _accesses(body)
        if n.buffer.kind != "local" and is_wide(n, var)
    }


def widen_loops(plan: GroupPlan, chip: Multiprocessor) -> None:
    """Let threads do neighbouring iterations of the loops that they share.

    Loops that touch the same buffer of the group do as many at once, so that its elements stay with
    their threads.
    """
    shared = list(plan.distributed.values())
    for loop in shared:
        loop.width = 1
    if plan.group == 1 or plan.strided:
        return
    for loops in _independent_sets(shared):
        width = min(_most_of_loop(loop, plan.group, chip) for loop in loops)
        sizes = {size for loop in loops for size in _sizes(loop.body, loop.order[-1])}
        if sizes:
            for loop in loops:
                loop.width = min(width, chip.access_bits // 8 // min(sizes))


def _most_of_loop(loop: DistributedLoop, group: int, chip: Multiprocessor) -> int:
    """Neighbouring iterations that a thread can do at once, with work left for most threads."""
    if loop.scan or any(inner.bounded for inner in loop.loops):
        return 1
    width = _most(loop.body, loop.order[-1], chip)
    while width > 1 and 2 * loop.trips <= group * width:
        width //= 2
    return width


def _independent_sets(loops: list[DistributedLoop]) -> list[list[DistributedLoop]]:
    """Loops in sets that have no buffer of the group in common, with an element per iteration."""
    found: list[tuple[set[tuple[Buffer, int]], list[DistributedLoop]]] = []
    for loop in loops:
        touched = {
            (n.buffer.base, loop.trips)
            for n in walk(loop.body)
            if isinstance(n, Access) and n.buffer.kind == "local"
        }
        joined = [entry for entry in found if entry[0] & touched]
        found = [entry for entry in found if entry not in joined]
        buffers = touched.union(*(entry[0] for entry in joined))
        found.append((buffers, [*(each for entry in joined for each in entry[1]), loop]))
    return [entry[1] for entry in found]


def is_wide(node: AffineAccess, var: Var) -> bool:
    """Whether elements for neighbouring values of a variable are neighbours, made for vectors."""
    if node.where or not dtype_of(node.buffer.element).in_vectors:
        return False
    return address(node.buffer, node.index).coefficient(var) == 1
