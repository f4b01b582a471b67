"""interleave-lookups: slices that are looked up at the same places lie side by side."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from polyblocks.affine.element import I32, I64, INDEX, dtype_of
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    Access,
    Buffer,
    For,
    Index,
    IndirectLoad,
    Load,
    Nest,
    Node,
    Op,
    Sequence,
    Store,
    Value,
)
from polyblocks.affine.ops import Ops
from polyblocks.affine.rewrites.flat_addresses import Linear
from polyblocks.affine.rewrites.simplify import eliminate_common
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class InterleaveLookupsPass(NestPass):
    """Copy an array of few slices so that one load of a lane gets the elements of two of them.

    Sums and weights of a grid, real and imaginary parts, coordinates and colors are often slices of
    an array, and all of them are looked up at a place that is known at run time only. A vector
    whose lanes are loaded from a place each takes time for every lane, but not more for a lane that
    is twice as long.

    Before::

        affine.for %i = 0 to 100000 { ...
          %p = memref.load %grid[%at] : memref<2400xf32>
          %k = arith.addi %at, %c1200 : index
          %q = memref.load %grid[%k] : memref<2400xf32> ... }

    After::

        affine.for %x = 0 to 1200 {
          ... affine.store %a, %both[2 * %x] ... affine.store %b, %both[2 * %x + 1] }
        affine.for %i = 0 to 100000 { ...
          %k = arith.muli %at, %c2 : index
          %p = memref.load %both[%k] : memref<2400xf32>
          %l = arith.addi %k, %c1 : index
          %q = memref.load %both[%l] : memref<2400xf32> ... }

    All slices must be looked up at every place: then the place is within the first one. Targets
    whose lanes cannot be loaded from a place each keep the array.
    """

    name: ClassVar[str] = "interleave-lookups"
    #: Slices of an array, at most.
    most: int = 4
    #: Lookups for each element of a copy, at least: what a pair saves is a lane's load, and what
    #: is copied is read and written.
    often: float = 8.0

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Copy for every nest what it looks up often."""
        if not context.target.gathers:
            return
        for nest in sequence.nests():
            found = _Lookups()
            found.visit(nest.body, 1, Var(1))
            for buffer, groups in found.groups.items():
                slices = self._slices(buffer, groups)
                if buffer in found.others or not slices:
                    continue
                new = Buffer((buffer.numel,), buffer.element, "alloc", bytes_per_element=4)
                copy = _copy(buffer, new, slices)
                copy.name, copy.kind = f"{nest.name}_interleaved", "copy"
                copy.sources = nest.sources
                sequence.buffers.append(new)
                sequence.items.insert(sequence.items.index(nest), copy)
                for group in groups:
                    group.move(new, slices)
                eliminate_common(nest.body)
                nest.replace()
                context.decide(
                    self.name, nest.name, "interleaved", elements=buffer.numel, slices=slices
                )

    def _slices(self, buffer: Buffer, groups: list[_Group]) -> int:
        """How many slices all lookups of a buffer need of it together; 0 if a copy is no gain."""
        if len(buffer.shape) != 1 or buffer.bytes_per_element != 4:
            return 0
        times = sum(group.times * len(group.loads) for group in groups)
        counts = {group.slices(buffer.numel) for group in groups}
        slices = counts.pop()
        if counts or not 2 <= slices <= self.most or times < self.often * buffer.numel:
            return 0
        return slices


@dataclass
class _Group:
    """Loads in one block whose addresses differ by constants, in program order.

    Attributes:
        block: the nodes that they are among.
        times: how often they happen.
        loads: each with its constant.
    """

    block: list[Node]
    times: int
    loads: list[tuple[IndirectLoad, int]] = field(default_factory=list)

    def slices(self, elements: int) -> int:
        """How many slices of an array are all looked up; 0 if they are no such slices."""
        consts = sorted({const for _, const in self.loads})
        if len(consts) < 2:
            return 0
        step = consts[1] - consts[0]
        even = consts == list(range(consts[0], consts[-1] + 1, step))
        return len(consts) if even and step * len(consts) == elements else 0

    def move(self, new: Buffer, slices: int) -> None:
        """Load from the copy instead."""
        from polyblocks.mlir import ir

        base = min(const for _, const in self.loads)
        size = new.numel // slices
        first, const = self.loads[0]
        at = _narrow(first.index[0], self.block)
        ops = Ops()
        scaled = ops.op("arith.muli", [at, ops.constant(slices, at.type)])
        self._insert(first, ops.out)
        for load, own in self.loads:
            ops = Ops()
            # Subtract the offset of the first one's slice, and add the own slice's number.
            offset = (own - base) // size - (const - base) * slices
            address = scaled
            if offset:
                address = ops.op("arith.addi", [scaled, ops.constant(offset, at.type)])
            if dtype_of(at.type) != INDEX:
                address = ops.op("arith.index_cast", [address], ir.IndexType.get())
            load.index, load.buffer = [address], new
            self._insert(load, ops.out)

    def _insert(self, before: Node, nodes: list[Node]) -> None:
        at = next(i for i, node in enumerate(self.block) if node is before)
        self.block[at:at] = nodes


@dataclass
class _Lookups:
    """Loads of a nest with an index of their own in every lane.

    Attributes:
        groups: of each array.
        others: arrays that are accessed in another way as well.
    """

    groups: dict[Buffer, list[_Group]] = field(default_factory=dict)
    others: set[Buffer] = field(default_factory=set)
    sums: dict[Value, Linear] = field(default_factory=dict)
    varying: set[Value] = field(default_factory=set)
    counting: set[Value] = field(default_factory=set)

    def visit(self, nodes: list[Node], times: int, innermost: Var) -> None:
        """Visit a block that runs ``times`` times."""
        here: dict[tuple[Buffer, Linear], _Group] = {}
        for node in nodes:
            if isinstance(node, For):
                self.visit(node.body, times * node.trips, node.var)
            elif isinstance(node, IndirectLoad) and self.varying.issuperset(node.index):
                at = self._of(node.index[0])
                key = node.buffer, Linear(0, at.terms)
                if key not in here:
                    here[key] = _Group(nodes, times)
                    self.groups.setdefault(node.buffer, []).append(here[key])
                here[key].loads.append((node, at.const))
            elif isinstance(node, Access):
                self.others.add(node.buffer)
            self._learn(node, innermost)

    def _of(self, value: Value) -> Linear:
        return self.sums.get(value) or Linear(0, ((value, 1),))

    def _learn(self, node: Node, innermost: Var) -> None:
        """Whether what a node makes differs between iterations, and which sum it is."""
        if isinstance(node, Index):
            if node.expr.is_constant:
                self.sums[node.result] = Linear(node.expr.const)
            elif innermost in node.expr.variables():
                self.counting.add(node.result)
            return
        moving = isinstance(node, Load) and any(innermost in e.variables() for e in node.index)
        known = self.varying | self.counting
        if moving or any(v in known for v in node.uses):
            self.varying.update(node.defines)
        if isinstance(node, Op) and len(node.results) == 1:
            self._add(node)

    def _add(self, op: Op) -> None:
        """Sums of indices do not wrap around: these are all in memory."""
        (result,) = op.results
        if op.name == "arith.constant" and dtype_of(result.type) in (INDEX, I32, I64):
            self.sums[result] = Linear(int(op.attributes["value"].value))
        elif op.name == "arith.index_cast":
            self.sums[result] = self._of(op.operands[0])
        elif op.name == "arith.addi":
            left, right = (self._of(v) for v in op.operands)
            self.sums[result] = left.plus(right)
        elif op.name == "arith.muli":
            left, right = (self._of(v) for v in op.operands)
            if not (left.terms and right.terms):
                number, other = (left, right) if not left.terms else (right, left)
                self.sums[result] = other.times(number.const)


def _narrow(index: Value, block: list[Node]) -> Value:
    """The integer that an index was cast from."""
    for node in block:
        if isinstance(node, Op) and node.name == "arith.index_cast" and node.results[0] is index:
            return node.operands[0]
    return index


def _copy(source: Buffer, target: Buffer, slices: int) -> Nest:
    """All slices of ``source`` at a place, one after the other, for every place."""
    size = source.numel // slices
    place = Var(size)
    body: list[Node] = []
    for number in range(slices):
        value = Value(source.element)
        body.append(Load(value, source, (Expr.of(place) + number * size,)))
        body.append(Store(value, target, (Expr.of(place) * slices + number,)))
    return Nest([For(place, body)], [], changed=True)
