"""Nests that change places with others."""

from __future__ import annotations

from collections.abc import Set

from polyblocks.affine.model import Buffer, Nest, Node, Sequence, reads, writes
from polyblocks.affine.users import Users


def moved(nest: Nest) -> Nest:
    """The nest as a new one: an old one is written back to where it was read."""
    return like(nest, nest.body)


def like(nest: Nest, body: list[Node]) -> Nest:
    """A new nest that does a part of what another one does, or takes its place."""
    new = Nest(body, [], changed=True)
    new.name, new.kind, new.sources = nest.name, nest.kind, nest.sources
    return new


def in_the_way(
    sequence: Sequence,
    users: Users,
    first: Nest,
    last: Nest,
    needs: Set[Buffer],
    makes: Set[Buffer],
) -> list[Nest] | None:
    """Nests to run before ``first`` so that ``last`` can run right behind it, in order.

    That is what stands between them and writes something that ``last`` accesses or reads something
    that it writes, and what such nests need in turn.

    Args:
        sequence: where they stand.
        users: who accesses what.
        first, last: the nests, in this order.
        needs: buffers that ``last`` reads, but for those that ``first`` alone makes.
        makes: buffers that it writes.

    Returns:
        None if something of that cannot run before ``first``.
    """
    moving: list[Nest] = []
    read, written = set(needs), set(makes)
    begin, end = sequence.items.index(first) + 1, sequence.items.index(last)
    for item in reversed(sequence.items[begin:end]):
        its_reads, its_writes = users.touched(item)
        if not its_writes & (read | written) and not its_reads & written:
            continue
        if not isinstance(item, Nest):
            return None
        moving.insert(0, item)
        read |= its_reads
        written |= its_writes
    made = {b.base for b in writes(first)}
    if moving and (made & (read | written) or written & {b.base for b in reads(first)}):
        return None
    return moving


def move_before(sequence: Sequence, users: Users, nests: list[Nest], place: Nest) -> None:
    """Let nests run right before another one, in this order."""
    for nest in nests:
        sequence.items.remove(nest)
        users.drop(nest)
    new = [moved(nest) for nest in nests]
    at = sequence.items.index(place)
    sequence.items[at:at] = new
    users.put_before(new, place)
