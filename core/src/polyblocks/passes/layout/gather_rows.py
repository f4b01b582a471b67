"""gather-rows: what is looked up at one place in all channels is a row of memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, ClassVar

from polyblocks.affine.access import stride_along, strides
from polyblocks.affine.analysis.parallel import is_parallel
from polyblocks.affine.buffers.row_copies import copied
from polyblocks.affine.cleanup.invariants import invariants
from polyblocks.affine.element import INDEX, dtype_of
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    Alloca,
    Buffer,
    Check,
    For,
    IndirectLoad,
    Load,
    Nest,
    Node,
    Op,
    Pure,
    Sequence,
    Store,
    Value,
    clone,
    index_exprs,
    remove_dead,
    stored_bases,
    walk,
)
from polyblocks.affine.ops import Ops, integer
from polyblocks.affine.rewrites.blocks import block_bounds
from polyblocks.affine.subnests import change_subnests, is_affine_code, parallel_shell
from polyblocks.passes.base import NestPass
from polyblocks.target import TargetDescription


@dataclass(frozen=True)
class GatherRowsPass(NestPass):
    """Copy an array so that its channels lie side by side, and look up vectors of them.

    Samples of an image are taken at the same places in all of its channels. A vector whose lanes
    are loaded from a place each takes time for every lane; a vector of the channels of one place
    takes one load. Places and weights are computed for a block of samples first, with a sample in
    each lane, and the channels of the block are transposed at last.

    Before::

        affine.for %c = 0 to 16 { affine.for %i = 0 to 64 { affine.for %j = 0 to 64 {
          %x = affine.load %places[%i, %j] ... %at = arith.index_cast ...
          %v = memref.load %image[%c, %at] ... affine.store %r, %out[%c, %i, %j] } } }

    After::

        affine.for %x = 0 to 1000 { affine.for %c = 0 to 16 {
          ... affine.load %image[%c, %x] ... affine.store %a, %rows[%x, %c] } }
        affine.for %i = 0 to 64 {
          affine.for %j = 0 to 64 {
            %x = affine.load %places[%i, %j] ... %at = ... affine.store %at, %ats[%j] }
          affine.for %j = 0 to 64 {
            %at = affine.load %ats[%j]
            affine.for %c = 0 to 16 {
              %v = memref.load %rows[%at, %c] ... affine.store %r, %results[%j, %c] } }
          affine.for %c = 0 to 16 { affine.for %j = 0 to 64 {
            ... affine.load %results[%j, %c] ... affine.store %a, %out[%c, %i, %j] } } }

    An array whose channels lie side by side already is not copied. Any other one must be looked up
    often enough to be worth it.
    """

    name: ClassVar[str] = "gather-rows"
    #: Lookups for each element of a copy, at least.
    often: float = 0.75
    #: Samples of a block; rows of up to twice as many are one block.
    block: int = 64
    #: Samples of a block at least, so that they fill vectors.
    fewest: int = 16
    #: Channels at least, as a part of a vector's lanes.
    part: float = 0.5
    #: Channels at most: those of a block of samples are in the fastest memory.
    most: int = 64
    #: Values of a sample that are handed over, at most.
    values: int = 128
    #: Iterations of the loops that stay outside, for each thread.
    shares: int = 4

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Rewrite all code that looks up the same places in all channels, in tiles as well."""
        for nest in sequence.nests():
            if any(isinstance(n, IndirectLoad) for n in walk(nest.body)):
                copies: _Copies = {}
                change_subnests(nest, partial(self._change, nest, copies, context))
                position = sequence.items.index(nest)
                sequence.items[position:position] = [copy for _, copy in copies.values()]
                sequence.buffers += [buffer for buffer, _ in copies.values()]

    def _change(
        self,
        nest: Nest,
        copies: _Copies,
        context: Any,
        nodes: list[Node],
        around: list[For],
    ) -> list[Node] | None:
        """The code with rows of ``copies``, to which others are added; None if it is no gain."""
        found = self._lookups(nest, nodes, around, context.target)
        if found is None:
            return None
        for load, d in found.scattered().items():
            if (load.buffer, d) not in copies:
                copies[load.buffer, d] = copied(load.buffer, d, nest)
        found.look_up_rows(copies)
        new = _in_blocks(found, self.block)
        remove_dead(new)
        elements = [buffer.numel for buffer, _ in copies]
        channels = found.channels.trips
        context.decide(self.name, nest.name, "rows", channels=channels, copied=elements)
        return new

    def _lookups(
        self, nest: Nest, nodes: list[Node], around: list[For], target: TargetDescription
    ) -> _Lookups | None:
        """The lookups at places that one of the loops shares; None if it is no gain."""
        loops, body = parallel_shell(nodes)
        if len(loops) < 2 or any(f.bounded or f.level or f.lanes or f.tile for f in loops):
            return None
        if not is_affine_code(body, IndirectLoad, Check) or loops[-1].trips < self.fewest:
            return None
        if not any(isinstance(n, IndirectLoad) for n in body):
            return None
        for channels in loops[:-1]:
            outer = [f for f in loops[:-1] if f is not channels]
            found = _Lookups(outer, channels, loops[-1], *invariants(For(channels.var, body)))
            if self._pays(nest, found, around, target):
                return found if all(is_parallel(f, nodes) for f in loops) else None
        return None

    def _pays(
        self, nest: Nest, found: _Lookups, around: list[For], target: TargetDescription
    ) -> bool:
        channels, points = found.channels.trips, found.points.trips
        tasks = prod(f.trips for f in (*around, *found.outer))
        if not self.part * target.vector_bits / 32 <= channels <= self.most:
            return False
        if tasks < self.shares * target.shared_level.size or not found.are_rows():
            return False
        lookups: dict[Buffer, int] = {}
        for load in found.scattered():
            lookups[load.buffer] = lookups.get(load.buffer, 0) + channels * points * tasks
        if any(n < self.often * buffer.numel for buffer, n in lookups.items()):
            return False
        written = stored_bases(nest.body)
        if any(load.buffer.base in written for load in found.loads):
            return False
        return len(found.handed_over()) <= self.values


#: By the array and its dimension of channels: the copy ``[places, channels]``, and what makes it.
_Copies = dict[tuple[Buffer, int], tuple[Buffer, Nest]]


class _Lookups:
    """A nest's loops and its code, in two parts.

    Attributes:
        outer: loops that stay outside.
        channels: the loop along which places stay the same.
        points: the innermost loop.
        shared: code that does not depend on the channel.
        own: the rest.
        loads: each load of ``own`` at run-time places, with its dimension of channels; None if
            the channels are no dimension.
    """

    def __init__(
        self, outer: list[For], channels: For, points: For, shared: list[Node], own: list[Node]
    ) -> None:
        self.outer, self.channels, self.points = outer, channels, points
        self.shared, self.own = shared, own
        exprs = index_exprs(own)
        for node in own:
            is_cast = isinstance(node, Op) and node.name == "arith.index_cast"
            # Numbers of channels have few bits.
            if is_cast and node.uses[0] in exprs:
                exprs[node.defines[0]] = exprs[node.uses[0]]
        mine = {v for n in own for v in n.defines}
        self.loads: dict[IndirectLoad, int | None] = {}
        for load in own:
            if isinstance(load, IndirectLoad):
                varying = [d for d, v in enumerate(load.index) if v in mine]
                found = [exprs.get(load.index[d]) for d in varying] == [Expr.of(channels.var)]
                self.loads[load] = varying[0] if found else None

    def are_rows(self) -> bool:
        """Whether all accesses of ``own`` are at one place, or at neighbours along the channels.

        But for stores.
        """
        if not self.loads or None in self.loads.values():
            return False
        if any(load.buffer.kind == "local" for load in self.loads):
            return False
        loads = [n for n in self.own if isinstance(n, Load)]
        return not any(
            n.where or stride_along(n.buffer, n.index, self.channels.var) not in (0, 1)
            for n in loads
        )

    def scattered(self) -> dict[IndirectLoad, int]:
        """The loads from arrays whose channels do not lie side by side, with their dimensions."""
        return {
            load: d
            for load, d in self.loads.items()
            if d is not None and strides(load.buffer)[d] != 1
        }

    def look_up_rows(self, copies: _Copies) -> None:
        """Load from copies ``[places, channels]``; the places are code that is shared."""
        for load, dimension in self.scattered().items():
            shape, (new, _) = load.buffer.shape, copies[load.buffer, dimension]
            ops = Ops(self.shared, load.location)
            first, *others = [d for d in range(len(shape)) if d != dimension]
            place = load.index[first]
            for d in others:
                place = ops.op("arith.muli", [place, ops.constant(shape[d], place.type)])
                place = ops.op("arith.addi", [place, load.index[d]])
            narrow = ops.op("arith.index_cast", [place], integer(32 if new.numel < 1 << 31 else 64))
            ops = Ops(location=load.location)
            at = ops.op("arith.index_cast", [narrow], place.type)
            index = [at, ops.index(Expr.of(self.channels.var))]
            where = next(i for i, node in enumerate(self.own) if node is load)
            self.own[where : where + 1] = [*ops.out, IndirectLoad(load.result, new, index)]

    def uniform(self) -> list[Node]:
        """Code of ``shared`` that does not depend on the point either."""
        found: list[Node] = []
        varying: set[Value] = set()
        for node in self.shared:
            fixed = isinstance(node, Pure) and self.points.var not in node.variables()
            if fixed and varying.isdisjoint(node.uses):
                found.append(node)
            else:
                varying.update(node.defines)
        return found

    def handed_over(self) -> list[Value]:
        """Values of points that the code of channels uses."""
        made = {v for n in self.shared for v in n.defines}
        made -= {v for n in self.uniform() for v in n.defines}
        return list(dict.fromkeys(v for n in self.own for v in n.uses if v in made))


def _in_blocks(found: _Lookups, block: int) -> list[Node]:
    """Loops around blocks of points: places, vectors of channels, and transposed results."""
    points = found.points.trips
    size = points if points <= 2 * block else block
    number = Var(-(-points // size))
    begin, upper = block_bounds(number, points, size)
    around = [f.var for f in found.outer]
    if number.extent == 1:
        begin, upper = Expr(0), ()
    else:
        around.append(number)
    nodes = _Block(found, size, begin, upper).nodes()
    loops = [For(var, []) for var in around]
    if loops:
        loops[-1].tile = True
    for loop in reversed(loops):
        loop.body, nodes = nodes, [loop]
    return nodes


class _Block:
    """A block of points.

    Args:
        found: the code.
        size: points.
        begin: the first one.
        upper: bounds of a loop over points.
    """

    def __init__(self, found: _Lookups, size: int, begin: Expr, upper: tuple[Expr, ...]) -> None:
        self.found, self.size, self.begin, self.upper = found, size, begin, upper
        self.kept: dict[Value, Buffer] = {}
        for value in found.handed_over():
            element = integer(64) if _is_index(value) else value.type
            self.kept[value] = self._local((size,), element)

    def nodes(self) -> list[Node]:
        """The code, with buffers of its own."""
        rows, results = self._rows()
        locals_ = [*self.kept.values(), *results.values()]
        return [*map(Alloca, locals_), self._places(), rows, *self._results(results)]

    def _local(self, shape: tuple[int, ...], element: Any) -> Buffer:
        size = dtype_of(element).nbytes
        return Buffer(shape, element, "local", bytes_per_element=size)

    def _places(self) -> Node:
        """The code that all channels share, a point in each lane."""
        point, values = Var(self.size), dict[Value, Value]()
        body = clone(self.found.shared, values, self._at(point))
        for value, buffer in self.kept.items():
            new = values[value]
            if _is_index(value):
                new = Ops(body).op("arith.index_cast", [new], buffer.element)
            body.append(Store(new, buffer, (Expr.of(point),)))
        return For(point, body, upper=self.upper)

    def _rows(self) -> tuple[Node, dict[Store, Buffer]]:
        """The code of the channels of one point after the other, and what is stored where."""
        point, values = Var(self.size), dict[Value, Value]()
        channel = self.found.channels.var
        body = clone(self.found.uniform(), values, self._at(point))
        for value, buffer in self.kept.items():
            new = Value(buffer.element)
            body.append(Load(new, buffer, (Expr.of(point),)))
            if _is_index(value):
                new = Ops(body).op("arith.index_cast", [new], value.type)
            values[value] = new
        lane, results = Var(channel.extent), dict[Store, Buffer]()
        at = {**self._at(point), channel: Expr.of(lane)}
        own: list[Node] = []
        for node in self.found.own:
            if not isinstance(node, Store):
                own += clone([node], values, at)
                continue
            results[node] = self._local((self.size, lane.extent), node.buffer.element)
            index = Expr.of(point), Expr.of(lane)
            own.append(Store(values.get(node.value, node.value), results[node], index))
        return For(point, [*body, For(lane, own)], upper=self.upper), results

    def _results(self, results: dict[Store, Buffer]) -> list[Node]:
        """Copies of the results to where they belong."""
        found: list[Node] = []
        for store, buffer in results.items():
            point, lane, value = Var(self.size), Var(buffer.shape[1]), Value(buffer.element)
            load = Load(value, buffer, (Expr.of(point), Expr.of(lane)))
            at = {**self._at(point), self.found.channels.var: Expr.of(lane)}
            new = clone([store], {store.value: value}, at)
            found.append(For(lane, [For(point, [load, *new], upper=self.upper)]))
        return found

    def _at(self, point: Var) -> dict[Var, Expr]:
        return {self.found.points.var: self.begin + Expr.of(point)}


def _is_index(value: Value) -> bool:
    return dtype_of(value.type) == INDEX
