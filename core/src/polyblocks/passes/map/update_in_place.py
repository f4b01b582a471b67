"""update-in-place: what is computed from an array element by element takes the array's memory."""

from __future__ import annotations

from typing import Any, ClassVar

from polyblocks.affine.access import address
from polyblocks.affine.analysis.boxes import overlap, reach
from polyblocks.affine.expr import Var
from polyblocks.affine.model import (
    Buffer,
    For,
    IndirectAtomic,
    IndirectLoad,
    IndirectStore,
    Load,
    Nest,
    Node,
    Sequence,
    Store,
    walk,
)
from polyblocks.affine.users import Users
from polyblocks.passes.base import NestPass


class UpdateInPlacePass(NestPass):
    """Store an array over one that is read for the last time, element by element.

    A store reads the line that it writes to from memory, unless that is in a cache; that of an
    element that was read just before is. So a step of a simulation moves three arrays and not four,
    and the program has an array less.

    The old array has to be the program's own and of the same shape; the nest reads each of its
    elements in the iteration that stores the new one, in no other one, and nothing reads it later.

    Before::

        affine.for %i = 0 to 8 { %0 = affine.load %old[%i] ... affine.store %v, %new[%i] }
        ... affine.load %new[%i + 1]

    After::

        affine.for %i = 0 to 8 { %0 = affine.load %old[%i] ... affine.store %v, %old[%i] }
        ... affine.load %old[%i + 1]
    """

    name: ClassVar[str] = "update-in-place"

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Let buffers live on in others, in program order."""
        users = Users(sequence)
        viewed = sequence.viewed()
        last = {b: item for item in sequence.items for b in users.touched(item)[0]}
        for nest in sequence.nests():
            read, written = users.touched(nest)
            for new in sorted(written - read - viewed, key=_number):
                if not _is_own(new, users) or users.writers(new) != [nest]:
                    continue
                for old in sorted(read - written - viewed, key=_number):
                    if last[old] is not nest or not _alike(old, new):
                        continue
                    if not _is_own(old, users) or users.before(nest, users.writers(old)[-1]):
                        continue
                    if not _element_by_element(nest, old, new):
                        continue
                    _replace(new, old, users)
                    last[old] = last.pop(new, nest)
                    context.decide(self.name, nest.name, "in place", buffer=list(new.shape))
                    break


def _number(buffer: Buffer) -> int:
    return buffer.number


def _is_own(buffer: Buffer, users: Users) -> bool:
    """Whether all that happens to a buffer are accesses of this sequence's nests, affine ones."""
    if buffer.kind != "alloc" or buffer.outer is not None or not users.writers(buffer):
        return False
    run_time = (IndirectLoad, IndirectStore, IndirectAtomic)
    items = (*users.readers(buffer), *users.writers(buffer))
    return all(
        isinstance(item, Nest)
        and not any(isinstance(n, run_time) and n.buffer is buffer for n in walk(item.body))
        for item in items
    )


def _alike(a: Buffer, b: Buffer) -> bool:
    return (a.shape, a.element, a.memref_type) == (b.shape, b.element, b.memref_type)


def _element_by_element(nest: Nest, old: Buffer, new: Buffer) -> bool:
    """Whether no element of the old array is read once a new one may have taken its place."""
    stores = [found for found in _accesses(nest.body) if isinstance(found[0], Store)]
    stores = [found for found in stores if found[0].buffer is new]
    # The store of each list of nodes that reads the old array, and those boxes.
    updates: set[Load | Store] = set()
    for node, loops, body in _accesses(nest.body):
        if not isinstance(node, Load) or node.buffer is not old:
            continue
        here = [s for s, _, around in stores if around is body]
        if len(here) != 1 or node.where or here[0].index != node.index:
            return False
        if body.index(here[0]) < body.index(node) or not _once(here[0], loops):
            return False
        updates.add(here[0])
    boxes = [(s, tuple(reach(e, loops) for e in s.index)) for s, loops, _ in stores]
    return all(
        a is b or not overlap(mine, others)
        for a, mine in boxes
        if a in updates
        for b, others in boxes
    )


def _accesses(
    nodes: list[Node], loops: tuple[For, ...] = ()
) -> list[tuple[Load | Store, tuple[For, ...], list[Node]]]:
    """All affine accesses, each with the loops around it and the list of nodes that it is in."""
    found: list[tuple[Load | Store, tuple[For, ...], list[Node]]] = []
    for node in nodes:
        if isinstance(node, For):
            found += _accesses(node.body, (*loops, node))
        elif isinstance(node, (Load, Store)):
            found.append((node, loops, nodes))
    return found


def _once(store: Load | Store, loops: tuple[For, ...]) -> bool:
    """Whether every iteration stores to another element: loops are the digits of the address."""
    place = address(store.buffer, store.index)
    if any(not isinstance(atom, Var) for atom, _ in place.terms):
        return False
    steps = []
    for loop in loops:
        step = abs(place.coefficient(loop.var) or 0)
        if loop.var.extent != 1:
            steps.append((step, loop.var.extent))
    below = 0
    for step, extent in sorted(steps):
        if step <= below:
            return False
        below += step * (extent - 1)
    return True


def _replace(new: Buffer, old: Buffer, users: Users) -> None:
    """Let all accesses to a buffer go to another one."""
    for item in {*users.readers(new), *users.writers(new)}:
        assert isinstance(item, Nest)
        for node in walk(item.body):
            if isinstance(node, (Load, Store)) and node.buffer is new:
                node.buffer = old
        item.changed = True
        users.refresh(item)
