"""Lattices: buffers that are zero but for elements a stride apart.

So does a transposed convolution, or the gradient of a strided one, spread what it reads: an
operation of the framework clears a buffer, and stores its input with gaps between the elements.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from polyblocks.affine.analysis.boxes import covered
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    AnyStore,
    Buffer,
    For,
    Nest,
    Op,
    Sequence,
    Store,
    reads,
    walk,
    writes,
)
from polyblocks.affine.padding.margins import is_zero
from polyblocks.affine.subnests import straight_loops


@dataclass(frozen=True)
class Lattice:
    """The elements of a buffer that are filled, where all others are zero.

    Element ``index`` of the source lies at ``first + strides * index``.

    Attributes:
        clear: the nest that stores zeros everywhere.
        fill: the nest that stores the source's elements.
        padding: numbers of the paddings that the zeros are part of.
        location: of the store of the zeros, for reports.
        zero: the constant.
        first, strides, extents: for each dimension, where the first element lies, how far apart
            they are, and how many there are.
        readers: the nests that read the buffer, all of them after both.
    """

    clear: Nest
    fill: Nest
    padding: frozenset[int]
    location: Any
    zero: Op
    first: tuple[int, ...]
    strides: tuple[int, ...]
    extents: tuple[int, ...]
    readers: list[Nest]

    def compact(self, index: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Which of the source's elements lies at an index, in each dimension.

        The index must be known to be on the lattice, or beside it as a multiple of the strides.
        """
        parts = zip(index, self.first, self.strides, strict=True)
        return tuple((expr - first) // stride for expr, first, stride in parts)


def lattices_of(sequence: Sequence) -> dict[Buffer, Lattice]:
    """The buffers of a program that are filled so, with a stride above 1 somewhere."""
    touching: dict[Buffer, list[Any]] = defaultdict(list)
    spread: set[Buffer] = set()
    for item in sequence.items:
        for base in {b.base for b in reads(item) | writes(item)}:
            touching[base].append(item)
        if isinstance(item, Nest):
            spread |= {
                n.buffer
                for n in walk(item.body)
                if isinstance(n, Store) and any(c > 1 for e in n.index for _, c in e.terms)
            }
    viewed = sequence.viewed()
    found: dict[Buffer, Lattice] = {}
    for buffer in sorted(spread, key=lambda b: b.number):
        if buffer.kind == "alloc" and buffer.outer is None and buffer not in viewed:
            lattice = _lattice(buffer, touching[buffer])
            if lattice is not None:
                found[buffer] = lattice
    return found


def _lattice(buffer: Buffer, items: list[Any]) -> Lattice | None:
    """How a buffer is filled that these items touch; None if it is in another way."""
    if len(items) < 3 or not all(isinstance(item, Nest) for item in items):
        return None
    clear, fill, *readers = items
    if any(buffer in writes(nest) for nest in readers):
        return None
    if buffer in reads(clear) or buffer in reads(fill):
        return None
    cleared, filled = _only_store(clear), _only_store(fill)
    if cleared is None or filled is None:
        return None
    store, loops = cleared
    zeros = [n for n in walk(clear.body) if isinstance(n, Op) and store.value in n.results]
    whole = tuple((0, extent) for extent in buffer.shape)
    if not zeros or not is_zero(zeros[0]) or covered(store.index, loops) != whole:
        return None
    places = _places(*filled)
    if places is None or all(stride == 1 for _, stride, _ in places):
        return None
    first, strides, extents = zip(*places, strict=True)
    zero, location = zeros[0], store.location
    return Lattice(clear, fill, store.padding, location, zero, first, strides, extents, readers)


def _only_store(nest: Nest) -> tuple[Store, list[For]] | None:
    """The store of a nest of independent loops around straight-line code, if it is the only one."""
    shape = straight_loops(nest.body)
    if shape is None:
        return None
    loops, body = shape
    stores = [n for n in body if isinstance(n, AnyStore)]
    if len(stores) != 1 or not isinstance(stores[0], Store):
        return None
    return stores[0], loops


def _places(store: Store, loops: list[For]) -> list[tuple[int, int, int]] | None:
    """First element, stride and extent along each dimension; None if loops do not count so."""
    free = {loop.var for loop in loops if loop.var.extent != 1}
    found: list[tuple[int, int, int]] = []
    for expr in store.index:
        if expr.is_constant:
            found.append((expr.const, 1, 1))
            continue
        (atom, factor), *others = expr.terms
        if others or not isinstance(atom, Var) or factor < 1 or atom not in free:
            return None
        free.remove(atom)
        found.append((expr.const, factor, atom.extent))
    return None if free else found
