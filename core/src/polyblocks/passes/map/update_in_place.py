"""update-in-place: what is computed from an array element by element takes the array's memory."""

from __future__ import annotations

from typing import Any, ClassVar

from polyblocks.affine.access import address
from polyblocks.affine.analysis.boxes import overlap, reach, with_loops
from polyblocks.affine.expr import Var
from polyblocks.affine.model import AffineAccess, Buffer, For, Load, Nest, Sequence, Store, walk
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
                if not users.is_only_accessed(new) or users.writers(new) != [nest]:
                    continue
                for old in sorted(read - written - viewed, key=_number):
                    if last[old] is not nest or not _same_layout(old, new):
                        continue
                    writers = users.writers(old)
                    if not writers or users.before(nest, writers[-1]):
                        continue
                    if not users.is_only_accessed(old):
                        continue
                    if not _element_by_element(nest, old, new):
                        continue
                    _replace(new, old, users)
                    last[old] = last.pop(new, nest)
                    context.decide(self.name, nest.name, "in place", buffer=list(new.shape))
                    break


def _number(buffer: Buffer) -> int:
    return buffer.number


def _same_layout(a: Buffer, b: Buffer) -> bool:
    return (a.shape, a.element, a.memref_type) == (b.shape, b.element, b.memref_type)


def _element_by_element(nest: Nest, old: Buffer, new: Buffer) -> bool:
    """Whether no element of the old array is read once a new one may have taken its place."""
    accesses = list(with_loops(nest.body))
    # Several in a body where rows are jammed.
    stores: dict[tuple[For, ...], list[Store]] = {}
    for node, loops in accesses:
        if isinstance(node, Store) and node.buffer is new:
            stores.setdefault(loops, []).append(node)
    updating: set[tuple[For, ...]] = set()
    for node, loops in accesses:
        if not isinstance(node, Load) or node.buffer is not old:
            continue
        body = loops[-1].body if loops else nest.body
        here = stores.get(loops, [])
        own = [s for s in here if s.index == node.index]
        if len(own) != 1 or node.where:
            return False
        if body.index(own[0]) < body.index(node) or not _once(here, loops):
            return False
        updating.add(loops)
    boxes = [
        (loops, tuple(reach(e, loops) for e in store.index))
        for loops, found in stores.items()
        for store in found
    ]
    return all(
        mine == theirs or not overlap(box, other)
        for mine, box in boxes
        if mine in updating
        for theirs, other in boxes
    )


def _once(stores: list[Store], loops: tuple[For, ...]) -> bool:
    """Whether stores and iterations store to elements that all differ.

    Loops are the digits of the address, and so is which of the stores it is, in steps of one size.
    """
    places = sorted((address(s.buffer, s.index) for s in stores), key=lambda place: place.const)
    first = places[0]
    if any(not isinstance(atom, Var) for atom, _ in first.terms):
        return False
    steps = []
    if len(places) > 1:
        apart = places[1].const - first.const
        if places != [first + apart * k for k in range(len(places))]:
            return False
        steps.append((apart, len(places)))
    for loop in loops:
        step = abs(first.coefficient(loop.var) or 0)
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
            if isinstance(node, AffineAccess) and node.buffer is new:
                node.buffer = old
        item.replace()
        users.refresh(item)
