"""select-layers: a choice among few layers loads all of them in order, and selects."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from polyblocks.affine.access import MAX_STEP
from polyblocks.affine.analysis.known_values import KnownValues
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    For,
    Index,
    IndirectLoad,
    Load,
    Node,
    Sequence,
    Value,
    remove_dead,
    replace_values,
    stored_bases,
)
from polyblocks.affine.operation_cost import MAX_NODES
from polyblocks.affine.ops import Integers, Ops, integer
from polyblocks.affine.rewrites.run_time_places import known_exprs
from polyblocks.affine.subnests import change_subnests, parallel_shell
from polyblocks.affine.vectors.lanes import last_is_contiguous
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class SelectLayersPass(NestPass):
    """Load every layer of an array, where each element of a row chooses one at run time.

    The lanes of a vector that each load from a place of their own take a memory access each. Where
    they differ by the layer alone, and layers are few, vectors of all layers are loaded in order,
    and the bits of the number of the layer select: half of what is left with each bit.

    Before::

        affine.for %x = 0 to 640 {
          %k = ...                                    // 0 to 3
          %v = memref.load %a[%k, %x] : memref<4x640xf32> ... }

    After::

        affine.for %x = 0 to 640 {
          %a0 = affine.load %a[0, %x] ... %a3 = affine.load %a[3, %x]
          %odd = arith.cmpi ne, (%k & 1), %c0
          %low = arith.select %odd, %a1, %a0
          %high = arith.select %odd, %a3, %a2
          %upper = arith.cmpi ne, (%k & 2), %c0
          %v = arith.select %upper, %high, %low ... }
    """

    name: ClassVar[str] = "select-layers"
    #: Nodes of a loop's body afterwards; more takes long to compile.
    max_nodes: int = MAX_NODES
    #: Iterations of a loop that is too short for vectors.
    short: int = 8

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Select in every nest and sub-nest that gathers."""
        # A gather takes an access for each lane, a layer one and an operation for each vector.
        most = context.target.vector_bits // 32
        for nest in sequence.nests():
            found: list[int] = []

            def change(
                nodes: list[Node], around: list[For], found: list[int] = found
            ) -> list[Node] | None:
                del around
                loops, body = parallel_shell(nodes)
                if any(isinstance(n, For) for n in body):
                    return None
                # Shorter loops inside of it are unrolled.
                lanes = next((f for f in reversed(loops) if f.trips > self.short), None)
                if lanes is None or lanes.trips < most:
                    return None
                chosen = _choices(lanes.var, loops[loops.index(lanes) :], body, most)
                more = sum(3 * node.buffer.shape[d] for node, d in chosen.items())
                if not chosen or len(body) + more > self.max_nodes:
                    return None
                _select(body, chosen)
                found.append(len(chosen))
                return nodes

            if change_subnests(nest, change):
                remove_dead(nest.body)
                context.decide(self.name, nest.name, "layers selected", loads=sum(found))


def _choices(lane: Var, loops: list[For], body: list[Node], most: int) -> dict[IndirectLoad, int]:
    """The loads of a body that differ between lanes by the layer, and the dimension of it.

    Args:
        lane: the variable whose values are lanes.
        loops: the loop of it, and shorter ones inside.
        body: of the innermost loop.
        most: layers, at most.
    """
    inside = {f.var for f in loops}
    exprs = known_exprs(body)
    varying: dict[Value, int | None] = {}
    found: dict[IndirectLoad, int] = {}
    written = stored_bases(body)
    for node in body:
        if isinstance(node, Index):
            if not inside.isdisjoint(node.expr.variables()):
                varying[node.result] = node.expr.coefficient(lane)
            continue
        if isinstance(node, IndirectLoad):
            *_, last = range(len(node.index))
            moving = [d for d, v in enumerate(node.index) if v in varying]
            step = varying[node.index[last]] if last in moving else None
            # Turns are taken at places that are known.
            turns = all(v in exprs for d, v in enumerate(node.index) if [d] != moving[:-1])
            if step == 1 or (turns and step is not None and 1 < step <= MAX_STEP):
                moving.remove(last)
            few = len(moving) == 1 and 2 <= node.buffer.shape[moving[0]] <= most
            if few and last_is_contiguous(node) and node.buffer.base not in written:
                found[node] = moving[0]
        moves = any(v in varying for v in node.uses)
        if isinstance(node, Load):
            moves = any(not inside.isdisjoint(e.variables()) for e in node.index)
        if moves:
            varying.update(dict.fromkeys(node.defines, None))
    return found


def _select(body: list[Node], chosen: dict[IndirectLoad, int]) -> None:
    """Replace loads with a run-time layer index by loads of all layers and selections."""
    writer = _Writer()
    for node in body:
        if isinstance(node, IndirectLoad) and node in chosen:
            writer.select(node, chosen[node])
        else:
            writer.out.append(node)
    replace_values(writer.out, writer.same)
    # Detect accesses that are affine now.
    KnownValues().block(writer.out)
    body[:] = writer.out


@dataclass
class _Writer:
    """Code with selections.

    Attributes:
        out: the code so far.
        bits: conditions that say which bits of a number are set, the lowest one first.
        layers: what has been loaded already.
        same: value -> its replacement.
    """

    out: list[Node] = field(default_factory=list)
    bits: dict[Value, list[Value]] = field(default_factory=dict)
    layers: dict[tuple[Any, ...], Value] = field(default_factory=dict)
    same: dict[Value, Value] = field(default_factory=dict)

    def select(self, node: IndirectLoad, dimension: int) -> None:
        """Load an element of every layer, and select one."""
        count = node.buffer.shape[dimension]
        values = [self._load(node, dimension, layer) for layer in range(count)]
        ops = Ops(self.out)
        for condition in self._conditions(node.index[dimension], (count - 1).bit_length()):
            pairs = [values[i : i + 2] for i in range(0, len(values), 2)]
            values = [
                ops.select(condition, pair[1], pair[0]) if len(pair) == 2 else pair[0]
                for pair in pairs
            ]
        (self.same[node.result],) = values

    def _load(self, node: IndirectLoad, dimension: int, layer: int) -> Value:
        index = Value(node.index[dimension].type)
        key = (node.buffer, layer, *(v for d, v in enumerate(node.index) if d != dimension))
        if key not in self.layers:
            self.out.append(Index(index, Expr(layer)))
            at = [index if d == dimension else v for d, v in enumerate(node.index)]
            self.layers[key] = Value(node.result.type)
            self.out.append(IndirectLoad(self.layers[key], node.buffer, at, node.location))
        return self.layers[key]

    def _conditions(self, number: Value, count: int) -> list[Value]:
        known = self.bits.setdefault(number, [])
        if len(known) < count:
            ops, i32 = Ops(self.out), integer(32)
            narrow = ops.op("arith.index_cast", [number], i32)
            zero = ops.constant(0, i32)
            for bit in range(len(known), count):
                part = ops.op("arith.andi", [narrow, ops.constant(1 << bit, i32)])
                known.append(ops.compare(Integers.NOT_EQUAL, part, zero))
        return known[:count]
