"""Sums of terms that a running maximum scales: what they are once the maximum is another one.

``sum_j exp(x_j - m) * v_j`` with another maximum ``n`` in place of ``m`` is ``exp(m - n)`` times as
large. So it is with all values of degree one in ``exp(x - m)``: such a value times another one, the
sum of two of them, or an array of them. Found from what is computed, not from what it is called.

:func:`kind_of` says which values are of degree one, for reductions that go over blocks of columns
(:mod:`polyblocks.affine.fusion.column_chains`) and for chains of products
(:mod:`polyblocks.affine.fusion.chains.row_kinds`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from polyblocks.affine.analysis.dataflow import makers_of, slice_of
from polyblocks.affine.analysis.reductions import ReductionNest
from polyblocks.affine.element import printed
from polyblocks.affine.expr import Expr
from polyblocks.affine.model import Buffer, Load, Nest, Node, Op, Store, Value, walk
from polyblocks.affine.ops import Ops, has_flag

_MAXIMA = ("arith.maximumf", "arith.maxnumf")
_EXPONENTIALS = ("math.exp", "math.exp2")
_CONVERSIONS = ("arith.extf", "arith.truncf")


class Kind(Enum):
    """Numbers that a value depends on.

    PLAIN: of nothing that a row reduces. SHIFT: of the largest element of its row. EXPONENT: an
    element less a shift, or a multiple of that. LINEAR: of degree one in exponentials of such.
    LATE: of a sum of the row.
    """

    PLAIN = auto()
    SHIFT = auto()
    EXPONENT = auto()
    LINEAR = auto()
    LATE = auto()


#: Kinds of two operands, and of the result.
_OF_TWO = {
    ("arith.subf", Kind.PLAIN, Kind.SHIFT): Kind.EXPONENT,
    ("arith.mulf", Kind.EXPONENT, Kind.PLAIN): Kind.EXPONENT,
    ("arith.mulf", Kind.PLAIN, Kind.EXPONENT): Kind.EXPONENT,
    ("arith.mulf", Kind.LINEAR, Kind.PLAIN): Kind.LINEAR,
    ("arith.mulf", Kind.PLAIN, Kind.LINEAR): Kind.LINEAR,
    ("arith.divf", Kind.LINEAR, Kind.PLAIN): Kind.LINEAR,
    ("arith.divf", Kind.LINEAR, Kind.LATE): Kind.LINEAR,
    ("arith.addf", Kind.LINEAR, Kind.LINEAR): Kind.LINEAR,
    ("arith.subf", Kind.LINEAR, Kind.LINEAR): Kind.LINEAR,
}


def kind_of(op: Op, kinds: list[Kind]) -> Kind | None:
    """The kind of an operation's result; None if another maximum would not just scale it.

    Operations of two numbers may be done in another order (``reassoc``). Whether factors of two
    LINEAR operands are the same, and whether an EXPONENT times a PLAIN one has one factor for the
    whole row, are the caller's to know.

    Args:
        op: with one result.
        kinds: of its operands.
    """
    first = kinds[0] if kinds else Kind.PLAIN
    if all(kind is Kind.PLAIN for kind in kinds):
        return Kind.PLAIN
    if op.name == "arith.extf" or (op.name in _CONVERSIONS and first in (Kind.LINEAR, Kind.LATE)):
        return first
    if op.name in _EXPONENTIALS and first is Kind.EXPONENT:
        return Kind.LINEAR
    if op.name == "arith.negf" and first is Kind.LINEAR:
        return Kind.LINEAR
    if len(kinds) != 2 or not has_flag(op, "reassoc"):
        return None
    return _OF_TWO.get((op.name, kinds[0], kinds[1]))


@dataclass(frozen=True)
class Maximum:
    """A number for each row that stands for its maximum: that, or what follows from it.

    Attributes:
        buffer: where a reduction stores it.
        of: the array whose rows they are.
        outer: for each parallel loop of the reduction, which dimension of ``buffer`` it counts.
        rows: pairs of dimensions of ``buffer`` and of the array that are the same.
        form: of what the largest is taken, see :func:`_form`.
    """

    buffer: Buffer
    of: Buffer
    outer: tuple[int, ...]
    rows: tuple[tuple[int, int], ...]
    form: Hashable

    @classmethod
    def of_reduction(
        cls, shape: ReductionNest, combiners: list[Op], arrays: dict[Buffer, int]
    ) -> Maximum | None:
        """The maximum that a reduction is; None if it is anything else.

        Args:
            shape: the reduction.
            combiners: of its carried values.
            arrays: those whose rows may be meant, and which dimension the columns are.
        """
        stores = [n for n in shape.after if isinstance(n, Store)]
        if len(combiners) != 1 or combiners[0].name not in _MAXIMA or len(stores) != 1:
            return None
        (store,), loop = stores, shape.reductions[0]
        loads = [n for n in shape.inner if isinstance(n, Load) and n.buffer in arrays]
        if len(loads) != 1 or not _follows(store.value, loop.results[0], shape.after):
            return None
        (load,) = loads
        terms = [v for v in combiners[0].operands if v is not loop.arguments[0]]
        at = {e: d for d, e in enumerate(store.index)}
        variables = [Expr.of(p.var) for p in shape.parallel]
        places = {e: d for d, e in enumerate(load.index)}
        if len(terms) != 1 or any(v not in at or v not in places for v in variables):
            return None
        rows = tuple((at[v], places[v]) for v in variables)
        form = _form(terms[0], makers_of([*shape.before, *shape.inner]))
        return cls(store.buffer, load.buffer, tuple(at[v] for v in variables), rows, form)


def _follows(value: Value, result: Value, nodes: list[Node]) -> bool:
    """Whether a value is a result, or computed of it and of nothing that is loaded."""
    code = slice_of([value], makers_of(nodes))
    uses = {v for node in code for v in node.uses}
    return all(isinstance(n, Op) for n in code) and (value is result or result in uses)


def _form(value: Value, makers: Mapping[Value, Node]) -> Hashable:
    """The code that a value is computed by, wherever the loads are; equal for equal code."""
    node = makers.get(value)
    if isinstance(node, Load):
        return node.buffer
    if not isinstance(node, Op):
        return value
    attributes = sorted((key, printed(a)) for key, a in node.attributes.items())
    return node.name, *attributes, *(_form(v, makers) for v in node.operands)


@dataclass(frozen=True)
class Rescaling:
    """The factor ``exp(x - m)`` of a value, and where ``m`` is.

    Attributes:
        maximum: what ``m`` is an element of.
        row: its element, by dimension of the maximum's buffer; numbers of dimensions for an array
            whose elements have the factor.
        steps: the operations from the difference to the exponential. One of them may multiply by
            a constant, which stands in front of it.
    """

    maximum: Maximum
    row: tuple[Expr | int, ...]
    steps: tuple[Op, ...]

    def factor(self, old: Value, new: Value, out: list[Node]) -> Value:
        """The number that turns a value with the maximum ``old`` into one with ``new``."""
        difference, *rest = self.steps
        ops = Ops(out)
        value, before = ops.like(difference, [old, new]), difference.results[0]
        constants: dict[Value, Value] = {}
        for op in rest:
            if op.name == "arith.constant":
                constants[op.results[0]] = ops.like(op, [])
                continue
            operands = [value if v is before else constants[v] for v in op.operands]
            value, before = ops.like(op, operands), op.results[0]
        return value


@dataclass
class Scales:
    """Which arrays have elements of degree one in an exponential of a maximum.

    Attributes:
        maxima: the maxima, by the buffer where they are stored.
        arrays: the arrays' factors.
    """

    maxima: dict[Buffer, Maximum]
    arrays: dict[Buffer, Rescaling] = field(default_factory=dict)

    def learn(self, nest: Nest, store: Store) -> bool:
        """Look at a nest that stores an element; False if it depends on a maximum otherwise."""
        degrees = _Degrees(self)
        if not degrees.see(walk(nest.body)) or store.value in degrees.differences:
            return False
        factor = degrees.factors.get(store.value)
        if factor is None:
            return True
        places = {e: d for d, e in enumerate(store.index)}
        if not all(e in places for e in factor.row):
            return False
        row = tuple(places[e] for e in factor.row if isinstance(e, Expr))
        self.arrays[store.buffer] = Rescaling(factor.maximum, row, factor.steps)
        return True

    def of(self, shape: ReductionNest, combiners: list[Op]) -> list[Rescaling | None] | None:
        """The factors of carried values; None if one depends on a maximum in another way."""
        degrees = _Degrees(self)
        own = set(map(id, combiners))
        if not degrees.see(n for n in (*shape.before, *shape.inner) if id(n) not in own):
            return None
        inside = {f.var for f in shape.reductions}
        found: list[Rescaling | None] = []
        for op, argument in zip(combiners, shape.reductions[-1].arguments, strict=True):
            (term,) = [v for v in op.operands if v is not argument] or [argument]
            if term in degrees.differences:
                return None
            factor = degrees.factors.get(term)
            if factor is not None:
                if op.name != "arith.addf" or not has_flag(op, "reassoc"):
                    return None
                if any(isinstance(e, Expr) and e.depends_on_any(inside) for e in factor.row):
                    return None
            found.append(factor)
        # Parts start from the operations' identity, the whole from this.
        if any(v in degrees.factors or v in degrees.differences for v in shape.reductions[0].inits):
            return None
        return found


class _Degrees:
    """Values of straight-line code that depend on a maximum.

    Attributes:
        references: elements of a maximum.
        differences: values ``c * (x - m)``, on the way to an exponential.
        factors: values of degree one.
    """

    def __init__(self, known: Scales) -> None:
        self.known = known
        self.references: dict[Value, Load] = {}
        self.differences: dict[Value, Rescaling] = {}
        self.factors: dict[Value, Rescaling] = {}

    def see(self, nodes: Iterable[Node]) -> bool:
        """Whether nothing of these nodes depends on a maximum in another way."""
        code: list[Node] = list(nodes)
        self.makers = makers_of(code)
        return all(self._see(node) for node in code)

    def _see(self, node: Node) -> bool:
        if isinstance(node, Load):
            return self._load(node)
        dependent = [
            v
            for v in node.uses
            if v in self.references or v in self.differences or v in self.factors
        ]
        if not dependent or isinstance(node, Store):
            return True
        return isinstance(node, Op) and len(node.results) == 1 and self._combine(node)

    def _load(self, load: Load) -> bool:
        if load.buffer in self.known.maxima:
            self.references[load.result] = load
        elif load.buffer in self.known.arrays:
            scale = self.known.arrays[load.buffer]
            row = tuple(load.index[d] for d in scale.row if isinstance(d, int))
            self.factors[load.result] = Rescaling(scale.maximum, row, scale.steps)
        return True

    def _kind(self, value: Value) -> Kind:
        known = (self.references, Kind.SHIFT), (self.differences, Kind.EXPONENT)
        for values, kind in (*known, (self.factors, Kind.LINEAR)):
            if value in values:
                return kind
        return Kind.PLAIN

    def _combine(self, op: Op) -> bool:
        kind = kind_of(op, [self._kind(v) for v in op.operands])
        if kind is None or op.name in _CONVERSIONS:
            return False
        inner = [v for v in op.operands if v in self.differences]
        if inner:
            return self._continue(op, inner[0])
        if kind is Kind.EXPONENT:
            return self._subtract(op)
        factors = [self.factors[v] for v in op.operands if v in self.factors]
        self.factors[op.results[0]] = factors[0]
        return all(factor == factors[0] for factor in factors)

    def _subtract(self, op: Op) -> bool:
        """``x - m``, of an element of the row whose maximum it is."""
        x, m = op.operands
        reference = self.references[m]
        maximum = self.known.maxima[reference.buffer]
        # Of what is no element of the row, a maximum says nothing.
        if _form(x, self.makers) != maximum.form:
            return False
        code = slice_of([x], self.makers)
        for load in (n for n in code if isinstance(n, Load) and n.buffer is maximum.of):
            if any(reference.index[a] != load.index[b] for a, b in maximum.rows):
                return False
        row = tuple(reference.index)
        self.differences[op.results[0]] = Rescaling(maximum, row, (op,))
        return True

    def _continue(self, op: Op, value: Value) -> bool:
        """A difference times a constant, or its exponential."""
        before, (result,) = self.differences[value], op.results
        if op.name in _EXPONENTIALS:
            self.factors[result] = Rescaling(before.maximum, before.row, (*before.steps, op))
            return True
        (constant,) = [self.makers.get(v) for v in op.operands if v is not value]
        if not isinstance(constant, Op) or constant.name != "arith.constant":
            return False
        steps = (*before.steps, constant, op)
        self.differences[result] = Rescaling(before.maximum, before.row, steps)
        return True
