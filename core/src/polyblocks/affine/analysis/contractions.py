"""Contractions: reductions whose operands are moved by different loops around them.

Matrix products, convolutions, distances between all pairs of rows and products of any other
semiring have this form in common, and all that follows from it: a tile of rows and columns needs
one row or column of each operand for every step, however many elements it has. Nothing is asked
but accesses; what is computed of the operands does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import prod

from polyblocks.affine.access import stride_along
from polyblocks.affine.analysis.access_order import fastest_last
from polyblocks.affine.analysis.parallel import is_parallel
from polyblocks.affine.analysis.reduction_chains import StraightLineCode
from polyblocks.affine.analysis.reductions import ReductionNest
from polyblocks.affine.expr import Var
from polyblocks.affine.model import (
    AffineAccess,
    Buffer,
    For,
    IndirectLoad,
    Load,
    Node,
    Op,
    Pure,
    Store,
    Value,
)
from polyblocks.affine.subnests import parallel_shell


@dataclass(eq=False)
class Operand:
    """A value that a step of the reduction needs for a whole row, or for a whole column.

    Those of a contraction are its loads. Those of the products that it can be seen as are computed
    by any code of one side: the factors that a matrix unit takes are loads and what rounds them.

    Attributes:
        value: what the code of a step uses.
        nodes: straight-line code that computes it, of variables of its side and of the steps.
        of_rows: whether rows move it; else columns do.
        in_place: the load that it is, at an affine place of a one-dimensional view; None if it is
            computed, or is at a place that is not linear in one variable for each side.
        kept: whether its panel is filled once and kept between calls.
        looped: whether the place is linear only in the loops that the variables stand for.
        natural: the load, if steps are neighbours in its memory once they are counted in an order
            other than the product's, as the step in it is; else None.
    """

    value: Value
    nodes: list[Node]
    of_rows: bool
    in_place: Load | None = None
    kept: bool = False
    looped: bool = False
    natural: Load | None = None

    @cached_property
    def load(self) -> Load:
        """The only load of the code: asked of what is loaded, and at most rounded."""
        (load,) = (n for n in self.nodes if isinstance(n, Load))
        return load

    @property
    def on_the_way(self) -> tuple[Op, ...]:
        """What is done with the loaded element, one operation of the other's result."""
        return tuple(n for n in self.nodes if isinstance(n, Op))

    @property
    def side(self) -> int:
        """Its place in pairs of rows and columns: 0 if rows move it, else 1."""
        return 0 if self.of_rows else 1


@dataclass(frozen=True)
class ReductionLoops:
    """The loops that run over the steps of a reduction.

    Attributes:
        loops: those that carry values on, nested perfectly, from the outside in; none if the
            reduction is unrolled.
        body: what a step does; of an unrolled reduction, what all of them do.
    """

    loops: list[For]
    body: list[Node]

    @property
    def order(self) -> list[Var]:
        """The variables of the loops, the outermost one first."""
        return [loop.var for loop in self.loops]

    @property
    def trips(self) -> int:
        """Steps."""
        return prod(v.extent for v in self.order)


@dataclass(eq=False)
class Contraction:
    """The parts of a contraction.

    It is a nest of *independent* loops without bounds of their own (the *outer* loops) around
    straight-line code with one reduction in it:

    - a chain of loops, again without bounds of their own, which carry values and hold nothing but
      arithmetic and loads at affine places; a step may combine several terms, as the unrolled
      window of a convolution does; or
    - an unrolled reduction: terms that are copies of each other but for constants in the places
      that they load, joined by one commutative operation.

    Code after it may store, but nothing that the reduction reads. Of the loads in the
    reduction, let *m* be the outer variables that move one.

    - The *batch* is what all loads move with that are moved by most: those whose *m* is no part of
      another one's. Variables that move no load belong to it, too.
    - Without the batch the sets *m* fall into exactly two parts that have no variable in common:
      *rows* and *columns*. The columns have the variable along which the nest goes through memory.
    - On each of both sides some load is moved by the steps of the reduction as well.

    So a product of a matrix and a vector is none (the vector is moved by no outer loop), nor is a
    depthwise convolution (its weights are moved by channels, as the images are), nor a sum of one
    array, nor an outer product (nothing is reduced).

    Attributes:
        batch, rows, columns: variables of the outer loops, the one that is fastest in memory last.
        reduction: the loops that carry values, and the steps.
        before, after: straight-line code around these.
        operands: the loads that rows or columns move, one for each element.
        combiners: the commutative operation that joins what the steps compute to each of the
            carried values; None if a value is made in another way, so that steps have an order.
    """

    batch: list[Var]
    rows: list[Var]
    columns: list[Var]
    reduction: ReductionLoops
    before: list[Node]
    after: list[Node]
    operands: list[Operand]
    combiners: list[Op] | None

    @property
    def multiplies_once(self) -> bool:
        """Whether each step of its loops reads two elements and multiplies once.

        So do products of matrices, and distances that are squared by a product. The window of a
        convolution, unrolled, computes more, and so do operands that are made on the way.
        """
        body = self.reduction.body if self.reduction.loops else []
        products = [n for n in body if isinstance(n, Op) and n.name in ("arith.mulf", "arith.muli")]
        return len(products) == 1 and sum(isinstance(n, Load) for n in body) == 2

    def steps_first(self, operand: Operand) -> bool:
        """Whether neighbours in memory are neighbouring steps of the loops; else rows or columns.

        Args:
            operand: a load of the contraction, whose reduction has loops.
        """
        load, fastest = operand.load, (self.columns, self.rows)[operand.of_rows][-1]
        step = self.reduction.order[-1]
        along, steps = (stride_along(load.buffer, load.index, v) for v in (fastest, step))
        return along != 1 and bool(steps)

    def operand(self, load: Load) -> Operand | None:
        """The operand whose elements a load reads."""
        for operand in self.operands:
            if operand.load.buffer is load.buffer and operand.load.index == load.index:
                return operand
        return None


def contraction_of(nodes: list[Node]) -> Contraction | None:
    """The parts of a nest, or of a sub-nest of a tile; None if it is no contraction."""
    outer, body = parallel_shell(nodes)
    if len(outer) < 2 or any(loop.bounded for loop in outer):
        return None
    for found in _looped(nodes) if any(isinstance(n, For) for n in body) else _unrolled(body):
        reduction, before, after, loads, combiners = found
        stored = {n.buffer.base for n in after if isinstance(n, Store)}
        if any(load.buffer.base in stored for load in loads):
            continue
        order = fastest_last([loop.var for loop in outer], body)
        sides = _sides(order, loads)
        if sides is None:
            continue
        batch, rows, columns = sides
        operands = _operands(rows, columns, reduction, loads)
        if operands is None or not all(is_parallel(loop, nodes) for loop in outer):
            continue
        return Contraction(batch, rows, columns, reduction, before, after, operands, combiners)
    return None


#: The reduction, the code before and after it, its loads, its combiners.
_Parts = tuple[ReductionLoops, list[Node], list[Node], list[Load], list[Op] | None]


def _looped(nodes: list[Node]) -> Iterator[_Parts]:
    """The parts of a nest whose reduction is a chain of loops."""
    nest = ReductionNest.of_nodes(nodes)
    if nest is None or any(loop.bounded for loop in nest.reductions):
        return
    if _is_arithmetic(nest.before) and _is_arithmetic(nest.inner) and _is_epilogue(nest.after):
        loads = [n for n in nest.inner if isinstance(n, Load)]
        reduction = ReductionLoops(nest.reductions, nest.inner)
        yield reduction, nest.before, nest.after, loads, _combiners(nest.reductions[-1])


def _unrolled(body: list[Node]) -> Iterator[_Parts]:
    """The parts of a nest without loops inside, for each of its unrolled reductions."""
    if not _is_epilogue(body) or not _may_have_sides(body):
        return
    position = {node: i for i, node in enumerate(body)}
    end = next((i for i, n in enumerate(body) if not _is_arithmetic([n])), len(body))
    code = StraightLineCode(body)
    for chain in code.chains():
        at = position[chain.last] + 1
        terms = max(code.congruence_classes(chain.terms), key=len)
        if at <= end and len(terms) > 1:
            steps = ReductionLoops([], body[:at])
            yield steps, [], body[at:], code.loads(terms), [chain.last]


def _may_have_sides(body: list[Node]) -> bool:
    """Whether of two loads each has a variable that the other one lacks: asked of every nest."""
    moved = {
        frozenset(v for e in n.index for v in e.variables()) for n in body if isinstance(n, Load)
    }
    return any(a - b and b - a for a, b in combinations(moved, 2))


def _is_arithmetic(nodes: list[Node]) -> bool:
    return all(isinstance(n, (Pure, Load)) for n in nodes)


def _is_epilogue(nodes: list[Node]) -> bool:
    return all(isinstance(n, (Pure, AffineAccess, IndirectLoad)) for n in nodes)


def _combiners(innermost: For) -> list[Op] | None:
    """The operation that joins one or several terms to each carried value."""
    code = StraightLineCode(innermost.body)
    found: list[Op] = []
    for argument, value in zip(innermost.arguments, innermost.yields, strict=True):
        chain = code.chain(value)
        if chain is None or argument not in chain.terms:
            return None
        if code.uses(argument) != 1 or code.uses(value):
            return None
        found.append(chain.last)
    return found


def _sides(order: list[Var], loads: list[Load]) -> tuple[list[Var], list[Var], list[Var]] | None:
    """Batch, rows and columns; None if loads are not moved by two parts of the variables."""
    moved = list(dict.fromkeys(s for s in (_moving(load, order) for load in loads) if s))
    most = [s for s in moved if not any(s < other for other in moved)]
    common = frozenset.intersection(*most) if most else frozenset()
    parts: list[frozenset[Var]] = []
    for one in moved:
        rest = one - common
        if rest:
            touching = [p for p in parts if p & rest]
            parts = [p for p in parts if not p & rest] + [rest.union(*touching)]
    if len(parts) != 2:
        return None
    last = next(v for v in reversed(order) if v in parts[0] | parts[1])
    rows, columns = parts if last in parts[1] else parts[::-1]
    batch = [v for v in order if v not in rows | columns]
    return batch, [v for v in order if v in rows], [v for v in order if v in columns]


def _operands(
    rows: list[Var], columns: list[Var], reduction: ReductionLoops, loads: list[Load]
) -> list[Operand] | None:
    """The operands of M and N; None if K does not move both."""
    found: dict[tuple[Buffer, object], Operand] = {}
    stepping: set[bool] = set()
    for load in loads:
        of_rows = bool(_moving(load, rows))
        if not of_rows and not _moving(load, columns):
            continue
        if _moving(load, reduction.order) or any(_is_shifted(load, other) for other in loads):
            stepping.add(of_rows)
        found.setdefault((load.buffer, load.index), Operand(load.result, [load], of_rows))
    return list(found.values()) if len(stepping) == 2 else None


def _moving(load: Load, variables: list[Var]) -> frozenset[Var]:
    """Those of the variables that move a load."""
    return frozenset(v for e in load.index for v in e.variables()).intersection(variables)


def _is_shifted(load: Load, other: Load) -> bool:
    """Whether two loads are of different places, a constant distance apart."""
    if load.buffer is not other.buffer or load.index == other.index:
        return False
    return all((a - b).is_constant for a, b in zip(load.index, other.index, strict=True))
