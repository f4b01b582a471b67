"""absorb-margins: matrix units read zeros around an array that are nowhere in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.analysis.boxes import Box, covered, difference, with_loops
from polyblocks.affine.analysis.facts import facts_of
from polyblocks.affine.cleanup.dead_nests import drop_dead_nests
from polyblocks.affine.contraction.products.factors import has_units, is_product
from polyblocks.affine.expr import Expr
from polyblocks.affine.model import Buffer, Load, Nest, Sequence, Store, walk
from polyblocks.affine.naming.names import name_nests
from polyblocks.affine.padding.margins import Margin, margins_of, zeros_in
from polyblocks.affine.users import Users
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class AbsorbMarginsPass(NestPass):
    """Leave out the zeros around what a product on a matrix unit reads: its loads make them.

    So the padding of a convolution takes no memory and no kernel. The interior has
    a buffer of its own, or is read where it was copied from.

    Before, with zeros in ``%p[0]`` and ``%p[9]``::

        affine.for %i = 0 to 8 {
          %v = affine.load %x[%i]
          affine.store %v, %p[%i + 1] }
        ... affine.load %p[%i + %k] ...

    After::

        ... affine.if (%i + %k - 1 >= 0, 8 - %i - %k >= 0) { affine.load %x[%i + %k - 1] }
            else { 0.0 } ...
    """

    name: ClassVar[str] = "absorb-margins"
    needs: ClassVar[frozenset[str]] = frozenset({facts.NESTS, facts.KINDS, facts.UNTILED})
    breaks: ClassVar[frozenset[str]] = frozenset({facts.PADDING, facts.UNFUSED})

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Absorb the margins of all buffers that only such products read."""
        if not has_units(context.target):
            return
        users = Users(sequence)
        done = False
        for buffer, margin in margins_of(sequence).items():
            readers = users.readers(buffer)
            products = [
                r
                for r in readers
                if isinstance(r, Nest) and is_product(facts_of(r).contraction, context.target)
            ]
            if margin.cleared or not readers or len(products) != len(readers):
                continue
            if not all(_reads_whole(nest, buffer) for nest in products):
                continue
            writers = users.writers(buffer)
            # Where an earlier product found zeros, the interior has nothing yet.
            if not all(users.before(writer, products[0]) for writer in writers):
                continue
            if not _fills(writers, buffer, margin.inside):
                continue
            source = _source(buffer, margin, users, products)
            inside, order = source or _like(buffer, margin.inside)
            for nest in products:
                _read_inside(nest, buffer, inside, order, margin.inside)
            if source is None:
                for writer in writers:
                    assert isinstance(writer, Nest)
                    _write_inside(writer, buffer, inside, margin.inside)
            for item in {*products, *writers}:
                users.refresh(item)
            done = True
            context.decide(
                self.name,
                products[0].name,
                "margin absorbed",
                buffer=list(buffer.shape),
                inside=[high - low for low, high in margin.inside],
                copied=source is None,
            )
        if done:
            drop_dead_nests(sequence)
            name_nests(self.name, sequence, context)


def _reads_whole(nest: Nest, buffer: Buffer) -> bool:
    """Whether a nest reads a buffer by loads that have no conditions yet, and does not write it."""
    accesses = [n for n in walk(nest.body) if getattr(n, "buffer", None) is buffer]
    return all(isinstance(n, Load) and not n.where for n in accesses)


def _fills(writers: list[Any], buffer: Buffer, box: Box) -> bool:
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


def _like(buffer: Buffer, box: Box) -> tuple[Buffer, list[int]]:
    """A buffer for the elements in a box, with the same dimensions."""
    shape = tuple(high - low for low, high in box)
    inside = Buffer(shape, buffer.element, "alloc", bytes_per_element=buffer.bytes_per_element)
    return inside, list(range(len(shape)))


def _source(
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


def _read_inside(nest: Nest, buffer: Buffer, inside: Buffer, order: list[int], box: Box) -> None:
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


def _write_inside(nest: Nest, buffer: Buffer, inside: Buffer, box: Box) -> None:
    """Store what is inside of a box to the buffer for it; zeros are left to their own fate."""
    zeros = zeros_in(nest)
    for node in walk(nest.body):
        if isinstance(node, Store) and node.buffer is buffer and node.value not in zeros:
            node.index = tuple(e - low for e, (low, _) in zip(node.index, box, strict=True))
            node.buffer = inside
    nest.replace()
