"""How sums over a buffer with gaps are split into phases: results that meet the same elements."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from math import gcd, prod

from polyblocks.affine.analysis.reductions import ReductionNest, adds_products_of
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import Buffer, Load, Nest, Op, Store, walk
from polyblocks.affine.padding.lattices import Lattice
from polyblocks.attributes import ABSENT_ATTRIBUTE


@dataclass(frozen=True)
class Part:
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
class Axis:
    """A dimension of the buffer with gaps, along which results are split.

    Attributes:
        result: the variable of the results.
        window: the variable of the steps; None if each result reads at one place.
        parts: the phases.
    """

    result: Var
    window: Var | None
    parts: list[Part]

    @classmethod
    def of(
        cls, place: Expr, stride: int, results: set[Var], steps: set[Var], shifted: bool
    ) -> Axis | None:
        """How results read at a place, counted from the first element; None for another form.

        With ``shifted``, phases that read elements further on are joined, too.
        """
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
        parts: list[Part] = []
        for phase in range(min(every, result.extent)):
            at = ahead * phase + place.const
            fitting = [i for i in range(min(step, extent)) if (at + inside * i) % stride == 0]
            begin = fitting[0] if fitting else 0
            left = -(-(extent - begin) // step) if fitting else 0
            count = -(-(result.extent - phase) // every)
            one = Part(every, phase, 1, count, step, begin, 0, left)
            joined = _join(parts[-1], one, ahead, inside, stride) if parts else None
            if joined is not None and joined.steps and ahead != inside * joined.back:
                joined = joined if shifted else None
            parts[-1:] = [joined] if joined is not None else [*parts[-1:], one]
        return cls(result, window, parts)


def _join(part: Part, one: Part, ahead: int, inside: int, stride: int) -> Part | None:
    """A phase together with those before it; None if it reads at other distances than they do."""
    if (part.results, part.steps) != (one.results, one.steps):
        return None
    if not part.steps:
        return replace(part, count=part.count + 1)
    back = part.begin - one.begin if part.count == 1 else part.back
    if one.begin != part.begin - back * part.count or (ahead - inside * back) % stride:
        return None
    return replace(part, count=part.count + 1, back=back)


@dataclass(frozen=True)
class Split:
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
    axes: list[Axis]
    phases: list[tuple[Part, ...]]

    @classmethod
    def of(
        cls, nest: Nest, buffer: Buffer, lattice: Lattice, shifted: bool = False
    ) -> Split | None:
        """How a nest that reads a lattice is split; None if it cannot be.

        With ``shifted``, phases that read elements further on are one nest, too.
        """
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
        axes: list[Axis] = []
        for expr, first, stride in zip(load.index, lattice.first, lattice.strides, strict=True):
            if stride > 1:
                axis = Axis.of(expr - first, stride, results, steps, shifted)
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
    def results(self) -> int:
        """How many results the nest has."""
        return prod(loop.var.extent for loop in self.shape.parallel)

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
