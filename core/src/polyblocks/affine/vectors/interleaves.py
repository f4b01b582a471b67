"""Accesses that take turns: every second, third or ninth element, and those between them.

Colors of a pixel, real and imaginary parts, the two halves of an enlarged image, a small matrix at
every point: a loop that walks them has strides, but all of it together is a piece of memory, which
is moved in whole vectors whose lanes are then put in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from polyblocks.affine.access import MAX_STEP, address, stride_along
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    Access,
    AffineAccess,
    AnyStore,
    Buffer,
    For,
    Load,
    Node,
    Store,
)

#: Whether it stores, to what, its stride, and where, but for a constant.
_Family = tuple[bool, Buffer, int, Expr]

#: Longest stride where at least half of the elements are wanted: a 4 x 4 matrix.
MAX_WHOLE_STEP = 16


@dataclass(frozen=True)
class Interleave:
    """Accesses of one kind to one buffer with the same stride, less than it apart.

    Attributes:
        first: the access of the lowest address.
        last: the one that comes last in the loop's body.
        step: elements from lane to lane.
        reach: elements from the lowest address to the highest one in the same iteration.
        backward: whether every lane is ``step`` elements before the last one; loads only. The step
            may be 1 then.
    """

    first: AffineAccess
    last: AffineAccess
    step: int
    reach: int
    backward: bool = False


def interleaves(loop: For, across: Var | None = None) -> dict[AffineAccess, tuple[Interleave, int]]:
    """The group of each access that can be moved with its neighbours, and its place among them.

    Stores belong to one if together they leave nothing out: ``step`` of them, each one element
    further. Loads need not be complete. Nothing between the first and the last access of a group
    may touch the same memory in a way that forbids to have all of them at once.

    Args:
        loop: an innermost loop, whose iterations are lanes.
        across: the variable of the loop around, if its iterations are lanes.
    """
    var = loop.var if across is None else across
    families: dict[_Family, list[tuple[int, AffineAccess]]] = {}
    for node in loop.body:
        if not isinstance(node, AffineAccess):
            continue
        step = stride_along(node.buffer, node.index, var)
        if step is None or not _is_interleaved(node, step):
            continue
        place = address(node.buffer, node.index)
        key = (isinstance(node, Store), node.buffer, step, place - place.const)
        families.setdefault(key, []).append((place.const, node))
    found: dict[AffineAccess, tuple[Interleave, int]] = {}
    for (_, _, signed, _), members in families.items():
        step = abs(signed)
        for group in _groups(sorted(members, key=lambda m: m[0]), step):
            low, first = group[0]
            nodes = [node for _, node in group]
            if step > MAX_STEP and 2 * len({const for const, _ in group}) < step:
                continue
            if isinstance(first, Store) and [c - low for c, _ in group] != list(range(step)):
                continue
            if not _at_once(loop.body, nodes):
                continue
            last = next(n for n in reversed(loop.body) if n in nodes)
            assert isinstance(last, AffineAccess)
            whole = Interleave(first, last, step, group[-1][0] - low, signed < 0)
            found.update({node: (whole, const - low) for const, node in group})
    return found


def complete_interleaves(
    loop: For, across: Var | None = None
) -> dict[AffineAccess, tuple[Interleave, int]]:
    """Those of short strides that go forward and leave nothing out, as squares are written with."""
    groups = interleaves(loop, across)
    return {
        node: (group, place)
        for node, (group, place) in groups.items()
        if 1 < group.step <= MAX_STEP and not group.backward and group.reach == group.step - 1
    }


def _is_interleaved(node: AffineAccess, step: int) -> bool:
    """Whether accesses with a stride are moved in whole vectors."""
    return 2 <= step <= MAX_WHOLE_STEP or (isinstance(node, Load) and -MAX_STEP <= step < 0)


def _groups(
    members: Sequence[tuple[int, AffineAccess]], step: int
) -> list[list[tuple[int, AffineAccess]]]:
    """Accesses in the order of their addresses, cut where they are ``step`` or more apart."""
    groups: list[list[tuple[int, AffineAccess]]] = []
    for const, node in members:
        if groups and const - groups[-1][0][0] < step:
            groups[-1].append((const, node))
        else:
            groups.append([(const, node)])
    return groups


def _at_once(body: Sequence[Node], nodes: Sequence[AffineAccess]) -> bool:
    """Whether these accesses may all happen where the first, or the last of them does."""
    chosen = set(nodes)
    positions = [i for i, n in enumerate(body) if n in chosen]
    base, storing = nodes[0].buffer.base, isinstance(nodes[0], Store)
    for node in body[positions[0] : positions[-1]]:
        if node in chosen or not isinstance(node, Access):
            continue
        if node.buffer.base is base and (storing or isinstance(node, AnyStore)):
            return False
    return True
