"""split-phases: sums over a buffer that is mostly zero run over its other elements."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from polyblocks.affine.cleanup.splicing import splice_loops
from polyblocks.affine.cost.rates import compute_seconds, traffic_seconds
from polyblocks.affine.element import dtype_of
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    Buffer,
    For,
    Load,
    Nest,
    Node,
    Op,
    Opaque,
    Sequence,
    Store,
    Value,
    around,
    clone,
    walk,
)
from polyblocks.affine.naming.names import own_name
from polyblocks.affine.padding.lattices import Lattice, lattices_of
from polyblocks.affine.padding.polyphase import Part, Split
from polyblocks.affine.rewrites.moving import like
from polyblocks.affine.rewrites.permuting import permuted
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass
from polyblocks.target import TargetDescription


@dataclass(frozen=True)
class SplitPhasesPass(NestPass):
    """Leave out what a convolution multiplies by zeros that it put between its input's elements.

    Results a stride apart meet the input's elements with the same part of the window: they are a
    *phase*, a convolution without gaps (the polyphase form of a transposed convolution). Phases
    next to each other that read as many elements at the same distance are one nest. The elements
    get a buffer of their own, with zeros around them as far as the windows reach.

    Only zeros that the operation stored that also reads them are left out: products with zeros of
    the program's own are NaN where the other factor is infinite.

    Before, with zeros in ``%p`` and ``%x[i]`` in ``%p[2 * i + 1]``::

        affine.for %o = 0 to 16 {
          %s = affine.for %k = 0 to 4 iter_args(%a = %z) {
            ... affine.load %p[%o + %k], affine.load %w[%k] ... }
          affine.store %s, %y[%o] }

    After, with ``%x[i]`` in ``%q[i + 1]``; phases that read other distances are other nests::

        affine.for %o = 0 to 8 { affine.for %r = 0 to 2 {
          %s = affine.for %k = 0 to 2 iter_args(%a = %z) {
            ... affine.load %q[%o + %k + 1], affine.load %w[2 * %k + 1 - %r] ... }
          affine.store %s, %y[2 * %o + %r] } }

    Where a matrix unit multiplies, what the zeros cost it is weighed against storing results of
    phases between each other.
    """

    name: ClassVar[str] = "split-phases"
    needs: ClassVar[frozenset[str]] = frozenset(
        {facts.NESTS, facts.ROLLED_REDUCTIONS, facts.UNFUSED, facts.PADDING}
    )
    #: Largest number of nests that replace one.
    max_nests: int = 64

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Split the readers of every lattice."""
        for buffer, lattice in lattices_of(sequence).items():
            # Nests that are launched had better be few. On a CPU the tiles of phases that read the
            # same elements take half of the time of tiles that read others in each phase.
            few = context.target.launches_nests
            found = [Split.of(nest, buffer, lattice, few) for nest in lattice.readers]
            splits = [split for split in found if split is not None]
            pay = [self._pays(split, context.target) for split in splits]
            accept = len(splits) == len(found) and all(pay)
            for split in splits:
                context.decide(
                    self.name,
                    own_name(split.nest, sequence),
                    "split" if accept else "left whole",
                    nests=len(split.phases),
                    steps=split.shape.trips,
                    saved_steps=split.saved,
                )
            if accept:
                _replace(sequence, buffer, lattice, splits)

    def _pays(self, split: Split, target: TargetDescription) -> bool:
        """Whether fewer multiplications are worth results that are not stored side by side."""
        if len(split.phases) > self.max_nests:
            return False
        narrow = dtype_of(split.load.buffer.element).array
        rates = [unit.flops for unit in target.matrix_units if unit.operands == narrow]
        if rates:
            saved = 2 * split.saved * split.results / max(rates) if max(rates) else 0.0
            return saved > _extra_seconds(split, target)
        lanes = max(1, target.vector_bits // (8 * split.bytes)) if split.spreads else 1
        return split.marked or split.saved >= lanes


def _extra_seconds(split: Split, target: TargetDescription) -> float:
    """Time of starting more nests, and of storing results of phases between each other.

    Each phase stores a part of every line, one element at a time.
    """
    extra = (len(split.phases) - 1) * target.shared_level.overhead
    if split.spreads:
        nbytes = split.results * split.bytes
        again = prod(axis.parts[0].every for axis in split.axes) - 1
        stores = compute_seconds(target, split.results * target.lanes)
        traffic = traffic_seconds(target, nbytes * again, nbytes)
        extra += (stores or 0.0) + (traffic or 0.0)
    return extra


class _Phase:
    """Makes the nest of one of the phases, or of several."""

    def __init__(self, split: Split, parts: tuple[Part, ...]) -> None:
        self._split = split
        self._empty = not all(part.steps for part in parts)
        self._loops: dict[Var, list[Var]] = {}
        self.at: dict[Var, Expr] = {}
        for axis, part in zip(split.axes, parts, strict=True):
            place, phase = Var(part.results), Var(part.count)
            self._loops[axis.result] = [place, phase]
            self.at[axis.result] = Expr.of(place) * part.every + phase + part.first
            if axis.window is not None and not self._empty:
                step = Var(part.steps)
                self._loops[axis.window] = [step]
                begin = Expr(part.begin) - Expr.of(phase) * part.back
                self.at[axis.window] = Expr.of(step) * part.step + begin

    def nodes(self, lattice: Lattice, buffer: Buffer, before: tuple[int, ...]) -> list[Node]:
        """The nest.

        Args:
            lattice: of the buffer with gaps.
            buffer: where its elements are.
            before: how many zeros are in front of these, in each dimension.
        """
        values: dict[Value, Value] = {}
        variables = dict(self.at)

        def fresh(old: list[Value]) -> list[Value]:
            values.update((v, Value(v.type)) for v in old)
            return [values[v] for v in old]

        def build(nodes: list[Node]) -> list[Node]:
            out: list[Node] = []
            for node in nodes:
                if node is self._split.load:
                    index = lattice.compact(tuple(e.substitute(variables) for e in node.index))
                    moved = tuple(e + b for e, b in zip(index, before, strict=True))
                    (result,) = fresh([node.result])
                    out.append(Load(result, buffer, moved, node.location, (), node.padding))
                elif not isinstance(node, For):
                    out.extend(clone([node], values, variables))
                elif node.inits and self._empty:
                    inits = [values.get(v, v) for v in node.inits]
                    values.update(zip(node.results, inits, strict=True))
                else:
                    out.append(loop(node))
            return out

        def loop(node: For) -> For:
            new = self._loops.get(node.var)
            if new is None:
                new = [Var(node.var.extent, node.var.name)]
                variables[node.var] = Expr.of(new[0])
            inits = [values.get(v, v) for v in node.inits]
            arguments = fresh(node.arguments)
            body = build(node.body)
            yields = [values.get(v, v) for v in node.yields]
            inner = For(new[-1], body, inits, arguments, fresh(node.results), yields)
            return For(new[0], [inner]) if len(new) > 1 else inner

        return splice_loops(build(self._split.nest.body))


def _reach(split: Split, lattice: Lattice) -> list[tuple[int, int]]:
    """The least and the largest element that is read, in each dimension."""
    found = [(0, extent - 1) for extent in lattice.extents]
    for parts in split.phases:
        if all(part.steps for part in parts):
            at = _Phase(split, parts).at
            places = lattice.compact(tuple(e.substitute(at) for e in split.load.index))
            ranges = [place.range() for place in places]
            found = [(min(a, c), max(b, d)) for (a, b), (c, d) in zip(found, ranges, strict=True)]
    return found


def _pack(split: Split, sequence: Sequence) -> list[Nest]:
    """Let windows' elements lie side by side that are used in the same step of a phase.

    Neighbours of a window are in different phases: in no order of the steps are they in order.

    Returns:
        The nests that copy them.
    """
    steps = {loop.var for loop in split.shape.reductions}
    windows = {axis.window for axis in split.axes}
    found: list[Nest] = []
    for load in split.shape.inner:
        if not isinstance(load, Load) or load is split.load:
            continue
        moving = [set(expr.variables()) for expr in load.index]
        if not any(m & windows for m in moving) or not any(m - steps for m in moving):
            continue
        order = sorted(range(len(moving)), key=lambda d: bool(moving[d] - steps))
        copy = permuted(load.buffer, order)
        sequence.buffers.append(copy)
        variables = [Var(extent) for extent in load.buffer.shape]
        value = Value(load.result.type)
        index = tuple(map(Expr.of, variables))
        nodes: list[Node] = [
            Load(value, load.buffer, index, load.location),
            Store(value, copy, tuple(index[d] for d in order), load.location),
        ]
        found.append(like(split.nest, around(variables, nodes)))
        load.buffer, load.index = copy, tuple(load.index[d] for d in order)
    return found


def _replace(sequence: Sequence, buffer: Buffer, lattice: Lattice, splits: list[Split]) -> None:
    """Put the elements of a lattice side by side, and sum over these."""
    reaches = [_reach(split, lattice) for split in splits]
    ends = list(zip(*reaches, strict=True))
    before = tuple(-min(low for low, _ in end) for end in ends)
    shape = tuple(b + max(high for _, high in end) + 1 for b, end in zip(before, ends, strict=True))
    elements = Buffer(shape, buffer.element, "alloc", bytes_per_element=buffer.bytes_per_element)
    sequence.buffers.append(elements)
    for node in walk(lattice.fill.body):
        if isinstance(node, Store):
            moved = zip(lattice.compact(node.index), before, strict=True)
            node.buffer, node.index = elements, tuple(e + b for e, b in moved)
    lattice.fill.replace()
    places: dict[Nest | Opaque, list[Nest | Opaque]] = {lattice.clear: []}
    if shape != lattice.extents:
        variables = [Var(extent) for extent in shape]
        value = Value(lattice.zero.results[0].type)
        constant = Op(lattice.zero.name, [], lattice.zero.attributes, [value])
        index, padding = tuple(map(Expr.of, variables)), lattice.padding
        store = Store(value, elements, index, lattice.location, padding=padding)
        places[lattice.clear] = [like(lattice.clear, around(variables, [constant, store]))]
    for split in splits:
        packed = _pack(split, sequence)
        nests = [
            like(split.nest, _Phase(split, parts).nodes(lattice, elements, before))
            for parts in split.phases
        ]
        places[split.nest] = [*packed, *nests]
    sequence.items[:] = [new for item in sequence.items for new in places.get(item, [item])]
