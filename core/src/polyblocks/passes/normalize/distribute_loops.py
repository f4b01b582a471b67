"""distribute-loops: stores that share no computation get loops of their own."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

from polyblocks.affine.analysis.dataflow import makers_of, slice_of
from polyblocks.affine.model import (
    AnyLoad,
    Index,
    Nest,
    Node,
    Pure,
    Sequence,
    Store,
    clone,
    reads,
    remove_dead,
)
from polyblocks.affine.ops import is_constant
from polyblocks.affine.subnests import perfect_loops
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class DistributeLoopsPass(NestPass):
    """Make a nest of each store of a point-wise nest whose stores compute nothing in common.

    A nest with several results is not fused into the nests that read one of them. Nests that read
    the same are fused again later, where that is worth it.

    Before::

        affine.for %i = 0 to 100 {
          %r = affine.load %rows[%i]
          affine.store %r, %a[%i]
          %x = affine.load %updates[%i]
          affine.store %x, %b[%i] }

    After::

        affine.for %i = 0 to 100 {
          %r = affine.load %rows[%i]
          affine.store %r, %a[%i] }
        affine.for %i = 0 to 100 {
          %x = affine.load %updates[%i]
          affine.store %x, %b[%i] }
    """

    name: ClassVar[str] = "distribute-loops"

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Distribute every nest where that is possible."""
        del context
        items: list[Any] = []
        for item in sequence.items:
            items += distributed(item) if isinstance(item, Nest) else [item]
        sequence.items[:] = items


def distributed(nest: Nest) -> list[Nest]:
    """The nests of a nest's stores; itself, if it is not to be distributed."""
    loops, body = perfect_loops(nest.body)
    stores = [node for node in body if isinstance(node, Store)]
    plain = all(isinstance(node, (Pure, AnyLoad, Store)) for node in body)
    if len(stores) < 2 or not plain or any(loop.inits for loop in loops):
        return [nest]
    targets = [store.buffer.base for store in stores]
    if len({*targets}) < len(targets) or {b.base for b in reads(nest)}.intersection(targets):
        return [nest]
    makers = makers_of(body)
    slices = [{n for n in slice_of(s.uses, makers) if not _is_free(n)} for s in stores]
    if any(one & other for one, other in combinations(slices, 2)):
        return [nest]
    return [_with_one(nest, position) for position in range(len(stores))]


def _is_free(node: Node) -> bool:
    """Whether computing it twice costs nothing: it is a constant, or where the loops are."""
    return isinstance(node, Index) or is_constant(node)


def _with_one(nest: Nest, position: int) -> Nest:
    """A copy of a nest with one of its stores."""
    body = clone(nest.body, {}, {})
    _, inner = perfect_loops(body)
    stores = [node for node in inner if isinstance(node, Store)]
    inner[:] = [node for node in inner if node is stores[position] or node not in stores]
    remove_dead(body)
    new = Nest(body, nest.source if not position else [], changed=True)
    new.sources = list(nest.sources)
    return new
