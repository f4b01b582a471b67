"""form-scans: a running value kept in memory becomes one carried by the loop that it runs along."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

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
from polyblocks.affine.naming.names import own_name
from polyblocks.affine.subnests import straight_loops
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class FormScansPass(NestPass):
    """The loop of a scan moves inside and carries the running values.

    A scan is a nest in which some buffers accumulate (each element is read and stored at the same
    place, which does not depend on one of the loops) while others get a result in every iteration
    of that loop. Afterwards all loops around it are parallel.

    Before::

        affine.for %k = 0 to 8 { affine.for %i = 0 to 4 {
          %s = affine.load %last[%i]
          %x = affine.load %a[%k, %i]
          %t = arith.addf %s, %x : f32
          affine.store %t, %out[%k, %i]
          affine.store %t, %last[%i] } }

    After::

        affine.for %i = 0 to 4 {
          %s = affine.load %first[%i]
          %e = affine.for %k = 0 to 8 iter_args(%acc = %s) -> f32 {
            %x = affine.load %a[%k, %i]
            %t = arith.addf %acc, %x : f32
            affine.store %t, %out[%k, %i]
            affine.yield %t : f32 }
          affine.store %e, %last[%i] }
    """

    name: ClassVar[str] = "form-scans"
    needs: ClassVar[frozenset[str]] = frozenset({facts.NESTS, facts.REDUCTIONS})

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Form scans, then give buffers versions."""
        found = False
        for nest in sequence.nests():
            scan = _Scan.of(nest)
            if scan is not None:
                nest.replace(scan.formed())
                found = True
                context.decide(
                    self.name,
                    own_name(nest, sequence),
                    "formed",
                    extent=scan.along.var.extent,
                    carried=len(scan.running),
                )
        if found:
            rename_buffers(sequence)


@dataclass
class _Scan:
    """A nest that is a scan.

    Attributes:
        parallel: the loops around, from the outside in.
        along: the loop along which it runs.
        body: the straight-line code.
        running: the stores of the running values.
        loads: for each of them, the loads of the value before.
    """

    parallel: list[For]
    along: For
    body: list[Node]
    running: list[Store]
    loads: list[list[Load]]

    @classmethod
    def of(cls, nest: Nest) -> _Scan | None:
        shape = straight_loops(nest.body, IndirectStore)
        if shape is None:
            return None
        loops, body = shape
        stores = [n for n in body if isinstance(n, Store)]
        bases = [s.buffer.base for s in stores]
        if len(set(bases)) != len(bases):
            return None
        used: list[set[Var]] = [{v for e in s.index for v in e.variables()} for s in stores]
        # The loop that some stores depend on and others do not.
        along = [f for f in loops if 0 < sum(f.var in u for u in used) < len(used)]
        if len(along) != 1:
            return None
        parallel = [loop for loop in loops if loop is not along[0]]
        running = [s for s, u in zip(stores, used, strict=True) if along[0].var not in u]
        if not all(is_injective(s.index, [f.var for f in parallel]) for s in stores):
            return None
        results = [s for s in stores if s not in running]
        if not all(is_injective(s.index, [along[0].var]) for s in results):
            return None
        loads = _loads_before(body, running, {s.buffer.base for s in results})
        return None if loads is None else cls(parallel, along[0], body, running, loads)

    def formed(self) -> list[Node]:
        """The nest with the running values carried."""
        inits = [Load(Value(s.value.type), s.buffer, s.index, s.location) for s in self.running]
        arguments = [Value(s.value.type) for s in self.running]
        replaced = {
            load.result: argument
            for loads, argument in zip(self.loads, arguments, strict=True)
            for load in loads
        }
        dropped = {id(n) for loads in self.loads for n in loads} | {id(s) for s in self.running}
        inner = [n for n in self.body if id(n) not in dropped]
        replace_values(inner, replaced)
        yields = [replaced.get(s.value, s.value) for s in self.running]
        results = [Value(v.type) for v in arguments]
        starts = [load.result for load in inits]
        loop = For(self.along.var, inner, starts, arguments, results, yields)
        body: list[Node] = [*inits, loop]
        for store, result in zip(self.running, results, strict=True):
            body.append(Store(result, store.buffer, store.index, store.location))
        for outer in reversed(self.parallel):
            body = [For(outer.var, body)]
        return body


def _loads_before(
    body: list[Node], running: list[Store], results: set[Any]
) -> list[list[Load]] | None:
    """For each running value the loads of what it was; None if one is read in another way."""
    by_base = {s.buffer.base: i for i, s in enumerate(running)}
    loads: list[list[Load]] = [[] for _ in running]
    stored: set[int] = set()
    for n in body:
        if isinstance(n, Store) and n.buffer.base in by_base:
            stored.add(by_base[n.buffer.base])
        if not isinstance(n, AnyLoad):
            continue
        if n.buffer.base in results:
            return None
        i = by_base.get(n.buffer.base)
        if i is None:
            continue
        same = isinstance(n, Load) and n.buffer is running[i].buffer and n.index == running[i].index
        if not same or i in stored:
            return None
        assert isinstance(n, Load)
        loads[i].append(n)
    # Without a load it is no running value: the last iteration alone would count.
    return loads if all(loads) else None
