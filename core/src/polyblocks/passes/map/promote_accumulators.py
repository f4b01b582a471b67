"""promote-accumulators: inner loops of sequential nests carry what they accumulate in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.model import (
    Alloca,
    Check,
    For,
    IndirectStore,
    Load,
    Node,
    Sequence,
    Store,
    Value,
    replace_values,
)
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class PromoteAccumulatorsPass(NestPass):
    """Let an innermost loop carry the elements that all of its iterations load and store.

    ``form-reductions`` does this for nests that are nothing but a reduction. Factorizations have
    theirs between other loops: lengths of columns, products of rows.

    Before::

        affine.for %k = 0 to 64 { ...
          affine.for %i = %k to 64 {
            %x = affine.load %a[%i, %k]
            %s = affine.load %total[0]
            %t = arith.addf %s, %x : f32
            affine.store %t, %total[0] } ... }

    After::

        affine.for %k = 0 to 64 { ...
          %s = affine.load %total[0]
          %t = affine.for %i = %k to 64 iter_args(%acc = %s) -> f32 {
            %x = affine.load %a[%i, %k]
            %u = arith.addf %acc, %x : f32
            affine.yield %u : f32 }
          affine.store %t, %total[0] ... }
    """

    name: ClassVar[str] = "promote-accumulators"

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Promote in every nest."""
        for nest in sequence.nests():
            count = sum(_promote(nodes, at) for nodes, at in list(_innermost(nest.body)))
            if count:
                nest.replace()
                context.decide(self.name, nest.name, "carried", loops=count)


def _innermost(nodes: list[Node]) -> Iterator[tuple[list[Node], For]]:
    """Loops without loops in them, each with the nodes that it is one of."""
    for node in nodes:
        if not isinstance(node, For) or node.unit or node.copy or node.schedule:
            continue
        if any(isinstance(n, For) for n in node.body):
            yield from _innermost(node.body)
        elif not node.lanes:
            yield nodes, node


def _promote(nodes: list[Node], loop: For) -> bool:
    """Promote what a loop accumulates; whether it does."""
    if loop.inits or loop.level or any(isinstance(n, _OPAQUE) for n in loop.body):
        return False
    stores = [s for s in loop.body if isinstance(s, Store) and _is_fixed(s, loop)]
    loads = {id(store): _loads_of(store, loop.body) for store in stores}
    if not stores or any(found is None for found in loads.values()):
        return False
    carried = [Value(store.value.type) for store in stores]
    replaced: dict[Value, Value] = {}
    before: list[Node] = []
    for store, argument in zip(stores, carried, strict=True):
        init = Load(Value(store.value.type), store.buffer, store.index, store.location)
        before.append(init)
        loop.inits.append(init.result)
        for load in loads[id(store)] or ():
            replaced[load.result] = argument
    gone = {id(n) for n in stores} | {id(n) for found in loads.values() for n in found or ()}
    loop.body[:] = [n for n in loop.body if id(n) not in gone]
    replace_values(loop.body, replaced)
    loop.arguments[:] = carried
    loop.yields[:] = [replaced.get(store.value, store.value) for store in stores]
    loop.results[:] = [Value(v.type) for v in carried]
    after = [
        Store(result, store.buffer, store.index, store.location)
        for store, result in zip(stores, loop.results, strict=True)
    ]
    at = next(i for i, n in enumerate(nodes) if n is loop)
    nodes[at : at + 1] = [*before, loop, *after]
    return True


#: Nodes that could access any element, or that hold others.
_OPAQUE = (Alloca, Check, For, IndirectStore)


def _is_fixed(store: Store, loop: For) -> bool:
    """Whether a store is to the same element in every iteration.

    That element is in the buffer even where the loop has no iterations.
    """
    if any(loop.var in e.variables() for e in store.index):
        return False
    ranges = [e.range() for e in store.index]
    extents = store.buffer.shape
    return all(low >= 0 and high < n for (low, high), n in zip(ranges, extents, strict=True))


def _loads_of(store: Store, body: list[Node]) -> list[Load] | None:
    """The loads of what a store writes to; None unless they are before it, and nothing else is."""
    place = next(i for i, n in enumerate(body) if n is store)
    loads: list[Load] = []
    for i, node in enumerate(body):
        if node is store or getattr(node, "buffer", None) is None:
            continue
        if node.buffer.base is not store.buffer.base:  # type: ignore[attr-defined]
            continue
        if not isinstance(node, Load) or node.where or i > place:
            return None
        if node.buffer is not store.buffer or node.index != store.index:
            return None
        loads.append(node)
    return loads or None
