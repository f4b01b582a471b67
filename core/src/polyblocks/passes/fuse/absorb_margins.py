"""absorb-margins: matrix units read zeros around an array that are nowhere in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.analysis.boxes import Box
from polyblocks.affine.analysis.facts import facts_of
from polyblocks.affine.cleanup.dead_nests import drop_dead_nests
from polyblocks.affine.contraction.products.factors import has_units, is_product
from polyblocks.affine.model import Buffer, Nest, Sequence, Store, walk
from polyblocks.affine.naming.names import name_nests
from polyblocks.affine.padding.absorbed import fills, read_inside, reads_whole, source
from polyblocks.affine.padding.margins import margins_of, zeros_in
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
            if not all(reads_whole(nest, buffer) for nest in products):
                continue
            writers = users.writers(buffer)
            # Where an earlier product found zeros, the interior has nothing yet.
            if not all(users.before(writer, products[0]) for writer in writers):
                continue
            if not fills(writers, buffer, margin.inside):
                continue
            found = source(buffer, margin, users, products)
            inside, order = found or _like(buffer, margin.inside)
            for nest in products:
                read_inside(nest, buffer, inside, order, margin.inside)
            if found is None:
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
                copied=found is None,
            )
        if done:
            drop_dead_nests(sequence)
            name_nests(self.name, sequence, context)


def _like(buffer: Buffer, box: Box) -> tuple[Buffer, list[int]]:
    """A buffer for the elements in a box, with the same dimensions."""
    shape = tuple(high - low for low, high in box)
    inside = Buffer(shape, buffer.element, "alloc", bytes_per_element=buffer.bytes_per_element)
    return inside, list(range(len(shape)))


def _write_inside(nest: Nest, buffer: Buffer, inside: Buffer, box: Box) -> None:
    """Store what is inside of a box to the buffer for it; zeros are left to their own fate."""
    zeros = zeros_in(nest)
    for node in walk(nest.body):
        if isinstance(node, Store) and node.buffer is buffer and node.value not in zeros:
            node.index = tuple(e - low for e, (low, _) in zip(node.index, box, strict=True))
            node.buffer = inside
    nest.replace()
