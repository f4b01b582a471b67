"""Zeros around an array that are nowhere in memory: loads make them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from polyblocks.affine.analysis.boxes import Box, covered, difference, with_loops
from polyblocks.affine.expr import Expr
from polyblocks.affine.model import Buffer, Load, Nest, Store, clone, walk, writes
from polyblocks.affine.padding.margins import Margin, zeros_in
from polyblocks.affine.users import Users


@dataclass(frozen=True)
class Absorbed:
    """A nest that makes the zeros around arrays itself.

    Attributes:
        nest: reads arrays where another one reads padded copies of them.
        copies: nests that make these, which nothing else reads.
    """

    nest: Nest
    copies: frozenset[Nest]


def without_margins(nest: Nest, margins: dict[Buffer, Margin], users: Users) -> Absorbed | None:
    """A nest without the padded copies that only it reads; None if there are none."""
    copied, spared = Nest(clone(nest.body, {}, {}), []), set[Nest]()
    copied.name, copied.kind = nest.name, nest.kind
    for buffer in dict.fromkeys(n.buffer for n in walk(nest.body) if isinstance(n, Load)):
        margin = margins.get(buffer)
        writers = [w for w in users.writers(buffer) if isinstance(w, Nest)]
        if margin is None or margin.cleared or users.readers(buffer) != [nest]:
            continue
        if not all(users.before(writer, nest) for writer in writers):
            continue
        if not reads_whole(nest, buffer) or not fills(writers, buffer, margin.inside):
            continue
        found = source(buffer, margin, users, [nest])
        if found is not None and all(writes(w) == {buffer} for w in writers):
            read_inside(copied, buffer, *found, margin.inside)
            spared.update(writers)
    return Absorbed(copied, frozenset(spared)) if spared else None


def reads_whole(nest: Nest, buffer: Buffer) -> bool:
    """Whether a nest reads a buffer by loads that have no conditions yet, and does not write it."""
    accesses = [n for n in walk(nest.body) if getattr(n, "buffer", None) is buffer]
    return all(isinstance(n, Load) and not n.where for n in accesses)


def fills(writers: list[Any], buffer: Buffer, box: Box) -> bool:
    """Whether what is stored besides zeros is all that is in a box, so that none of them is."""
    filled: list[Box] = []
    for nest in writers:
        zeros = zeros_in(nest)
        for store, loops in with_loops(nest.body):
            if isinstance(store, Store) and store.buffer is buffer and store.value not in zeros:
                part = covered(store.index, loops)
                if part is None:
                    return False
                filled.append(part)
    return not difference(box, filled)


def source(
    buffer: Buffer, margin: Margin, users: Users, products: list[Nest]
) -> tuple[Buffer, list[int]] | None:
    """The buffer with exactly the interior, or None.

    It is read instead of its copy, so it must not be written before the last product. With it
    come the margin's dimensions in the order in which the buffer has them.
    """
    found: Buffer | None = None
    order: list[int] = []
    writer: Nest | None = None
    for nest in users.writers(buffer):
        assert isinstance(nest, Nest)
        loads = {n.result: n for n in walk(nest.body) if isinstance(n, Load)}
        zeros = zeros_in(nest)
        for node in walk(nest.body):
            if isinstance(node, Store) and node.buffer is buffer and node.value not in zeros:
                load = loads.get(node.value)
                if found is not None or load is None or load.where:
                    return None
                shape = tuple(high - low for low, high in margin.inside)
                moved = [e - low for e, (low, _) in zip(node.index, margin.inside, strict=True)]
                dims = list(zip(moved, shape, strict=True))
                wanted = list(zip(load.index, load.buffer.shape, strict=True))
                order = [dims.index(pair) for pair in wanted if dims.count(pair) == 1]
                if sorted(order) != list(range(len(dims))):
                    return None
                found, writer = load.buffer, nest
    if found is None or writer is None or found.element != buffer.element:
        return None
    last = max(products, key=users.position)
    if users.written_between({found.base}, writer, last, set()):
        return None
    if any(found.base in {b.base for b in nest.effects()[1]} for nest in products):
        return None
    return found, order


def read_inside(nest: Nest, buffer: Buffer, inside: Buffer, order: list[int], box: Box) -> None:
    """Let the loads of a buffer read what is inside of a box, with zeros around.

    ``inside`` has the box's dimensions in this order.
    """
    for node in walk(nest.body):
        if isinstance(node, Load) and node.buffer is buffer:
            where: list[Expr] = []
            for expr, (low, high) in zip(node.index, box, strict=True):
                least, most = expr.range()
                if least < low:
                    where.append(expr - low)
                if most >= high:
                    where.append(Expr(high - 1) - expr)
            node.index = tuple(node.index[d] - box[d][0] for d in order)
            node.buffer, node.where = inside, tuple(where)
    nest.replace()
