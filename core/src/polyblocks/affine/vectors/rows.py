"""Neighbouring elements that one iteration accesses one by one: one wide access for all of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from math import gcd

from polyblocks.affine.access import address, is_whole
from polyblocks.affine.element import dtype_of
from polyblocks.affine.expr import Expr
from polyblocks.affine.model import Access, Buffer, For, Load, Node, Store, walk


@dataclass(frozen=True, eq=False)
class Row:
    """Loads of neighbouring elements, or stores to them, that are done at once.

    Attributes:
        nodes: all of them, in their order; what is loaded is there from the first one on, what is
            stored is stored at the last one.
        places: the element of each, from the first one of the row.
        first: the address of that one, a multiple of the width.
        width: elements of the row; of stores each is stored.
    """

    nodes: tuple[Load | Store, ...]
    places: tuple[int, ...]
    first: Expr
    width: int

    @property
    def stands_at(self) -> Load | Store:
        """The node in whose place the access is."""
        return self.nodes[0] if isinstance(self.nodes[0], Load) else self.nodes[-1]


def rows_of(nodes: list[Node], most_bytes: int) -> dict[Node, Row]:
    """The rows of a kernel's body by their nodes; rows are of one list of nodes.

    Args:
        nodes: the body; threads do iterations of it by themselves.
        most_bytes: of an access.
    """
    return {node: row for row in _rows(nodes, most_bytes) for node in row.nodes}


def _rows(nodes: list[Node], most_bytes: int) -> Iterator[Row]:
    stored, loaded = _touched(nodes)
    found: dict[Hashable, list[tuple[int, Load | Store]]] = {}
    for node in nodes:
        if isinstance(node, For):
            yield from _rows(node.body, most_bytes)
        # Loads move up and stores move down: no other access may be on the way.
        others = stored if isinstance(node, Load) else loaded
        if not isinstance(node, (Load, Store)) or node.buffer.base in others:
            continue
        buffer = node.buffer
        if (
            buffer.kind == "local"
            or not is_whole(buffer)
            or not dtype_of(buffer.element).in_vectors
        ):
            continue
        place = address(buffer, node.index)
        key = type(node), buffer, place.terms, frozenset(node.where)
        found.setdefault(key, []).append((place.const, node))
    for members in found.values():
        if len(members) > 1 and not _overtakes(members, nodes):
            yield from _of_row(members, most_bytes)


def _overtakes(members: list[tuple[int, Load | Store]], nodes: list[Node]) -> bool:
    """Whether what members store may be stored by others as well, which stores must not pass."""
    first = members[0][1]
    if isinstance(first, Load):
        return False
    own = {node for _, node in members}
    others = (n for n in walk(nodes) if isinstance(n, Access) and n.writes and n not in own)
    return any(n.buffer.base is first.buffer.base for n in others)


def _touched(nodes: list[Node]) -> tuple[set[Buffer], set[Buffer]]:
    """The memory that nodes store to, and the memory that they load from."""
    accesses = [n for n in walk(nodes) if isinstance(n, Access)]
    stored = {n.buffer.base for n in accesses if n.writes}
    return stored, {n.buffer.base for n in accesses if n.reads}


def _of_row(members: list[tuple[int, Load | Store]], most_bytes: int) -> Iterator[Row]:
    """Rows of accesses that differ by constants, each within the widest access."""
    buffer = members[0][1].buffer
    place = address(buffer, members[0][1].index)
    aligned = gcd(most_bytes // buffer.bytes_per_element, *(c for _, c in place.terms))
    # Past the last element there may be no memory.
    aligned = gcd(aligned, buffer.numel)
    chunks: dict[int, list[tuple[int, Load | Store]]] = {}
    for const, node in members if aligned > 1 else ():
        chunks.setdefault(const // aligned, []).append((const, node))
    for some in chunks.values():
        yield from _pieces(some, place, aligned)


def _pieces(members: list[tuple[int, Load | Store]], place: Expr, width: int) -> Iterator[Row]:
    """The row of the smallest width for accesses in an aligned piece of memory, or several."""
    distinct = {const for const, _ in members}
    if len(distinct) < 2:
        return
    halves: tuple[list[tuple[int, Load | Store]], ...] = ([], [])
    for member in members:
        halves[member[0] % width * 2 // width].append(member)
    stores = isinstance(members[0][1], Store)
    if len(distinct) == len(members) == width if stores else all(halves):
        low = min(distinct) // width * width
        nodes = tuple(node for _, node in members)
        yield Row(nodes, tuple(c - low for c, _ in members), place - place.const + low, width)
    else:
        for half in halves:
            yield from _pieces(half, place, width // 2)
