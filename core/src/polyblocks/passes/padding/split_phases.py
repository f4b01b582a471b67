"""split-phases: sums over a buffer that is mostly zero run over its other elements."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from math import gcd
from typing import Any, ClassVar

from polyblocks.affine.analysis.reductions import ReductionNest, adds_products_of
from polyblocks.affine.cleanup.splicing import splice_loops
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
from polyblocks.affine.rewrites.moving import like
from polyblocks.affine.rewrites.permuting import permuted
from polyblocks.attributes import ABSENT_ATTRIBUTE
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

    After, with ``%x[i]`` in ``%q[i + 1]``, this and another one for the odd results::

        affine.for %o = 0 to 8 {
          %s = affine.for %k = 0 to 2 iter_args(%a = %z) {
            ... affine.load %q[%o + %k + 1], affine.load %w[2 * %k + 1] ... }
          affine.store %s, %y[2 * %o] }
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
            found = [_Split.of(nest, buffer, lattice) for nest in lattice.readers]
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

    def _pays(self, split: _Split, target: TargetDescription) -> bool:
        """Whether fewer multiplications are worth results that are not stored side by side."""
        # A matrix unit multiplies zeros faster than phases are stored between each other.
        narrow = dtype_of(split.load.buffer.element).array
        if any(unit.operands == narrow for unit in target.matrix_units):
            return False
        lanes = max(1, target.vector_bits // (8 * split.bytes)) if split.spreads else 1
        worth = split.marked or split.saved >= lanes
        return len(split.phases) <= self.max_nests and worth


@dataclass(frozen=True)
class _Part:
    """Consecutive phases along one dimension that are one nest.

    Attributes:
        every: of how many results each phase has one.
        first, count: the phases.
        results: how many results each of them has.
        step: of how many steps one is left.
        begin, back: the first phase's first step that is left, and how many steps earlier that is
            in each phase after it.
        steps: how many steps are left.
    """

    every: int
    first: int
    count: int
    results: int
    step: int
    begin: int
    back: int
    steps: int


@dataclass(frozen=True)
class _Axis:
    """A dimension of the buffer with gaps, along which results are split.

    Attributes:
        result: the variable of the results.
        window: the variable of the steps; None if each result reads at one place.
        parts: the phases.
    """

    result: Var
    window: Var | None
    parts: list[_Part]

    @classmethod
    def of(cls, place: Expr, stride: int, results: set[Var], steps: set[Var]) -> _Axis | None:
        """How results read at a place, counted from the first element; None for another form."""
        moving = dict(place.terms)
        of_results = [v for v in moving if v in results]
        of_steps = [v for v in moving if v in steps]
        if len(of_results) != 1 or len(of_steps) > 1 or len(moving) != 1 + len(of_steps):
            return None
        (result,), window = of_results, of_steps[0] if of_steps else None
        assert isinstance(result, Var)
        assert window is None or isinstance(window, Var)
        ahead, extent = moving[result], 1 if window is None else window.extent
        inside = 0 if window is None else moving[window]
        every = stride // gcd(ahead, stride)
        step = stride // gcd(inside, stride)
        parts: list[_Part] = []
        for phase in range(min(every, result.extent)):
            at = ahead * phase + place.const
            fitting = [i for i in range(min(step, extent)) if (at + inside * i) % stride == 0]
            begin = fitting[0] if fitting else 0
            left = -(-(extent - begin) // step) if fitting else 0
            count = -(-(result.extent - phase) // every)
            one = _Part(every, phase, 1, count, step, begin, 0, left)
            joined = _join(parts[-1], one, ahead, inside) if parts else None
            parts[-1:] = [joined] if joined is not None else [*parts[-1:], one]
        return cls(result, window, parts)


def _join(part: _Part, one: _Part, ahead: int, inside: int) -> _Part | None:
    """A phase together with those before it; None if it reads otherwise than they do."""
    if (part.results, part.steps) != (one.results, one.steps):
        return None
    if not part.steps:
        return replace(part, count=part.count + 1)
    back = part.begin - one.begin if part.count == 1 else part.back
    if one.begin != part.begin - back * part.count or ahead != inside * back:
        return None
    return replace(part, count=part.count + 1, back=back)


@dataclass(frozen=True)
class _Split:
    """How a nest is split.

    Attributes:
        nest: what is split.
        shape: its loops.
        load: the load of the buffer with gaps.
        axes: the dimensions along which it is split.
        phases: for each nest in its place, a part for each of the axes.
    """

    nest: Nest
    shape: ReductionNest
    load: Load
    axes: list[_Axis]
    phases: list[tuple[_Part, ...]]

    @classmethod
    def of(cls, nest: Nest, buffer: Buffer, lattice: Lattice) -> _Split | None:
        """How a nest that reads a lattice is split; None if it cannot be."""
        shape = ReductionNest.of(nest)
        if shape is None or any(f.bounded for f in (*shape.parallel, *shape.reductions)):
            return None
        loads = [n for n in walk(nest.body) if isinstance(n, Load) and n.buffer is buffer]
        if len(loads) != 1 or loads[0] not in shape.inner or not shape.reorderable():
            return None
        (load,) = loads
        if not load.padding & lattice.padding:
            return None
        innermost = shape.reductions[-1]
        if not adds_products_of(load.result, shape.inner, innermost.arguments, innermost.yields):
            return None
        results = {loop.var for loop in shape.parallel}
        steps = {loop.var for loop in shape.reductions}
        axes: list[_Axis] = []
        for expr, first, stride in zip(load.index, lattice.first, lattice.strides, strict=True):
            if stride > 1:
                axis = _Axis.of(expr - first, stride, results, steps)
                if axis is None:
                    return None
                results.remove(axis.result)
                steps -= {axis.window}
                axes.append(axis)
        return cls(nest, shape, load, axes, list(product(*(axis.parts for axis in axes))))

    @property
    def saved(self) -> float:
        """How many steps less a result takes, on average."""
        share = 1.0
        for axis in self.axes:
            steps = sum(p.count * p.results * p.steps for p in axis.parts)
            share *= steps / axis.result.extent / (axis.window.extent if axis.window else 1)
        return self.shape.trips * (1 - share)

    @property
    def marked(self) -> bool:
        """Whether products with the zeros are no numbers that the program asks for."""
        return any(isinstance(n, Op) and ABSENT_ATTRIBUTE in n.attributes for n in self.shape.inner)

    @property
    def bytes(self) -> int:
        """Of the smallest element that is stored."""
        return min(store.buffer.bytes_per_element for store in self._stores)

    @property
    def spreads(self) -> bool:
        """Whether results that lie side by side become those of different phases."""
        split = {axis.result for axis in self.axes if axis.parts[0].every > 1}
        return any(v in split for s in self._stores for v in s.index[-1].variables())

    @property
    def _stores(self) -> list[Store]:
        return [n for n in walk(self.nest.body) if isinstance(n, Store)]

    def reach(self, lattice: Lattice) -> list[tuple[int, int]]:
        """The least and the largest element that is read, in each dimension."""
        found = [(0, extent - 1) for extent in lattice.extents]
        for parts in self.phases:
            if all(part.steps for part in parts):
                at = _Phase(self, parts).at
                places = lattice.compact(tuple(e.substitute(at) for e in self.load.index))
                ranges = [place.range() for place in places]
                found = [
                    (min(a, c), max(b, d)) for (a, b), (c, d) in zip(found, ranges, strict=True)
                ]
        return found

    def pack(self, sequence: Sequence) -> list[Nest]:
        """Let windows' elements lie side by side that are used in the same step of a phase.

        Neighbours of a window are in different phases: in no order of the steps are they in order.

        Returns:
            The nests that copy them.
        """
        steps = {loop.var for loop in self.shape.reductions}
        split = {axis.window for axis in self.axes}
        found: list[Nest] = []
        for load in self.shape.inner:
            if not isinstance(load, Load) or load is self.load:
                continue
            moving = [set(expr.variables()) for expr in load.index]
            if not any(m & split for m in moving) or not any(m - steps for m in moving):
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
            found.append(like(self.nest, around(variables, nodes)))
            load.buffer, load.index = copy, tuple(load.index[d] for d in order)
        return found


class _Phase:
    """Makes the nest of one of the phases, or of several."""

    def __init__(self, split: _Split, parts: tuple[_Part, ...]) -> None:
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


def _replace(sequence: Sequence, buffer: Buffer, lattice: Lattice, splits: list[_Split]) -> None:
    """Put the elements of a lattice side by side, and sum over these."""
    reaches = [split.reach(lattice) for split in splits]
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
        packed = split.pack(sequence)
        nests = [
            like(split.nest, _Phase(split, parts).nodes(lattice, elements, before))
            for parts in split.phases
        ]
        places[split.nest] = [*packed, *nests]
    sequence.items[:] = [new for item in sequence.items for new in places.get(item, [item])]
