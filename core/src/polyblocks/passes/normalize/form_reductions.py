"""form-reductions: an accumulation in memory becomes a value carried by its reduction loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from polyblocks.affine.analysis.coverage import is_injective
from polyblocks.affine.buffers.renaming import rename_buffers
from polyblocks.affine.expr import Var
from polyblocks.affine.model import (
    AnyLoad,
    For,
    IndirectStore,
    Load,
    Nest,
    Node,
    Sequence,
    Store,
    Value,
    replace_values,
)
from polyblocks.affine.subnests import straight_loops
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class FormReductionsPass(NestPass):
    """Loops that no store depends on move inside and carry what is accumulated.

    The order of the accumulation does not change. Afterwards buffers have versions: a nest that
    overwrites a whole buffer gets the buffer for itself, what was there before is another buffer.

    Before::

        affine.for %i = 0 to 4 { affine.for %k = 0 to 8 {
          %s = affine.load %r[%i]
          %x = affine.load %a[%i, %k]
          %t = arith.addf %s, %x : f32
          affine.store %t, %r[%i] } }

    After::

        affine.for %i = 0 to 4 {
          %s = affine.load %r0[%i]
          %t = affine.for %k = 0 to 8 iter_args(%acc = %s) -> f32 {
            %x = affine.load %a[%i, %k]
            %u = arith.addf %acc, %x : f32
            affine.yield %u : f32 }
          affine.store %t, %r[%i] }
    """

    name: ClassVar[str] = "form-reductions"
    establishes: ClassVar[frozenset[str]] = frozenset({facts.REDUCTIONS, facts.ROLLED_REDUCTIONS})

    def transform(self, sequence: Sequence, context: object) -> None:
        """Form reductions in every nest, then give buffers versions."""
        del context
        for nest in sequence.nests():
            _form(nest)
        rename_buffers(sequence)


def _form(nest: Nest) -> None:
    shape = straight_loops(nest.body, IndirectStore, bounded=True)
    if shape is None or not shape[0]:
        return
    loops, body = shape
    stores = [n for n in body if isinstance(n, Store)]
    if not stores or len({s.buffer.base for s in stores}) != len(stores):
        return
    used: list[set[Var]] = [{v for e in s.index for v in e.variables()} for s in stores]
    outer = used[0]
    reduction = [loop for loop in loops if loop.var not in outer]
    if not reduction or any(u != outer for u in used):
        return
    by_base = {s.buffer.base: s for s in stores}
    loads: dict[Store, list[Load]] = {s: [] for s in stores}
    for n in body:
        if isinstance(n, AnyLoad) and n.buffer.base in by_base:
            store = by_base[n.buffer.base]
            if not isinstance(n, Load) or n.buffer is not store.buffer or n.index != store.index:
                return
            loads[store].append(n)
    parallel = [loop for loop in loops if loop.var in outer]
    inside = {loop.var for loop in reduction}
    if any(v in inside for loop in parallel for e in loop.bounds for v in e.variables()):
        # It cannot be outside of what its bounds depend on.
        return
    if not all(is_injective(s.index, outer) for s in stores):
        return
    if not _loads_precede_stores(body, stores, loads):
        return

    inits = [Load(Value(s.value.type), s.buffer, s.index, s.location) for s in stores]
    inner: list[Node] = [n for n in body if not isinstance(n, Store)]
    carried = [Value(s.value.type) for s in stores]
    replaced: dict[Value, Value] = {}
    for store, argument in zip(stores, carried, strict=True):
        for load in loads[store]:
            replaced[load.result] = argument
    dropped = {id(n) for ls in loads.values() for n in ls}
    inner = [n for n in inner if id(n) not in dropped]
    yields = [replaced.get(s.value, s.value) for s in stores]
    replace_values(inner, replaced)

    arguments = carried
    made: list[For] = []
    for loop in reversed(reduction):
        results = [Value(v.type) for v in carried]
        new = For(
            loop.var,
            inner,
            [],
            arguments,
            results,
            yields,
            lower=loop.lower,
            upper=loop.upper,
        )
        made.append(new)
        inner, yields = [new], results
        arguments = [Value(v.type) for v in carried]
    # From the outside in, each loop starts with what the next outer one carries.
    starts = [load.result for load in inits]
    for new in reversed(made):
        new.inits = starts
        starts = new.arguments
    body = [*inits, made[-1]]
    for store, result in zip(stores, made[-1].results, strict=True):
        body.append(Store(result, store.buffer, store.index, store.location))
    for loop in reversed(parallel):
        body = [For(loop.var, body, lower=loop.lower, upper=loop.upper)]
    nest.replace(body)


def _loads_precede_stores(
    body: list[Node], stores: list[Store], loads: dict[Store, list[Load]]
) -> bool:
    position = {id(n): i for i, n in enumerate(body)}
    return all(position[id(ld)] < position[id(s)] for s in stores for ld in loads[s])
