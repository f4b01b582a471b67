"""Scores that are surely far above the finite minimum of a mask."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from polyblocks.affine.analysis.coverage import digits, iteration_at
from polyblocks.affine.analysis.dataflow import makers_of, slice_of
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.masks.absence import constants_of
from polyblocks.affine.masks.constraints import Condition, conditions_of
from polyblocks.affine.model import For, Load, Nest, Node, Op, Value, walk
from polyblocks.affine.rewrites.inlining import Candidate
from polyblocks.affine.users import Users

#: Constants up to this one, in magnitude, count among scores.
LARGE = 1e6
MAXIMA = ("arith.maximumf", "arith.maxnumf")
CASTS = ("arith.extf", "arith.truncf")
#: Functions of moderate numbers that are moderate.
_ALIKE = (
    *("arith.negf", "math.tanh", "math.absf", "arith.addf", "arith.subf"),
    *("arith.minimumf", "arith.minnumf"),
)
_INTEGERS = ("arith.sitofp", "arith.uitofp")
_LOGIC = ("arith.andi", "arith.ori", "arith.xori")
#: How many arrays are looked through one behind the other.
_DEPTH = 10

At = Mapping[Var, Expr]


@dataclass
class Body:
    """The code of a nest: who makes each value, and what is known of it.

    Attributes:
        makers: the node of each value.
        carriers: the loop and the number of each value that a loop carries.
        constants: numbers.
        conditions: comparisons of places.
    """

    makers: dict[Value, Node]
    carriers: dict[Value, tuple[For, int]]
    constants: dict[Value, float]
    conditions: dict[Value, Condition]

    @classmethod
    def of(cls, nest: Nest) -> Body:
        """The facts of a nest's code."""
        nodes = list(walk(nest.body))
        loops = [n for n in nodes if isinstance(n, For)]
        carriers = {a: (f, i) for f in loops for i, a in enumerate(f.arguments)}
        constants = {v: number.value for v, number in constants_of(nest.body).items()}
        return cls(makers_of(nodes), carriers, constants, conditions_of(nest.body))


@dataclass
class Moderate:
    """Says whether values are far from a mask's minimum: sums of products, and functions of them.

    Factors may be anything that a program is given; an addend may not: it may be a mask as well.

    Args:
        users: of all arrays.
    """

    users: Users
    _bodies: dict[Nest, Body] = field(default_factory=dict)
    _loops: dict[tuple[Nest, For, int], bool] = field(default_factory=dict)

    def body(self, nest: Nest) -> Body:
        """The facts of a nest's code."""
        if nest not in self._bodies:
            self._bodies[nest] = Body.of(nest)
        return self._bodies[nest]

    def is_maximum_of_some(self, nest: Nest, loop: For, number: int, depth: int = _DEPTH) -> bool:
        """Whether what a loop carries is the largest number of rows with a moderate one each.

        Masks are affine conditions: in each iteration of the loops around some iteration of this
        one must be outside of all of them, whatever the size of the arrays.
        """
        key = nest, loop, number
        if key not in self._loops:
            self._loops[key] = False
            body = self.body(nest)
            term = maximum_term(body, loop, number)
            self._loops[key] = (
                term is not None
                and not loop.bounded
                and any(
                    self.holds(nest, term, {loop.var: at}, depth)
                    for at in self._places(nest, loop, term, depth)
                )
            )
        return self._loops[key]

    def is_high(self, nest: Nest, value: Value, depth: int = _DEPTH) -> bool:
        """Whether a value is moderate or more, as the largest of a row with a moderate one is."""
        return self.holds(nest, value, {}, depth, more=True)

    def holds(
        self, nest: Nest, value: Value, at: At, depth: int = _DEPTH, *, more: bool = False
    ) -> bool:
        """Whether a value is moderate.

        Args:
            nest: where it is computed.
            value: the value.
            at: what some of the nest's variables are.
            depth: arrays that are looked through, at most.
            more: whether it may as well be larger.
        """
        body = self.body(nest)
        if value in body.constants:
            return abs(body.constants[value]) <= LARGE
        node = body.makers.get(value)
        if isinstance(node, For):
            number = node.results.index(value)
            return self._is_sum(nest, node, number, at, depth) or (
                more and self.is_maximum_of_some(nest, node, number, depth)
            )
        if isinstance(node, Load):
            return depth > 0 and self._load(node, at, depth, more)
        return isinstance(node, Op) and self._op(nest, node, at, depth, more)

    def _op(self, nest: Nest, op: Op, at: At, depth: int, more: bool) -> bool:
        body = self.body(nest)
        if op.name == "arith.select":
            truth = self._truth(nest, op.operands[0], at, depth)
            chosen = op.operands[1:] if truth is None else [op.operands[1 if truth else 2]]
            return all(self.holds(nest, v, at, depth, more=more) for v in chosen)
        if op.name in CASTS or op.name in MAXIMA:
            return all(self.holds(nest, v, at, depth, more=more) for v in op.operands)
        if op.name == "arith.mulf":
            held = {v for v in op.operands if self.holds(nest, v, at, depth)}
            others = (body.makers.get(v) for v in op.operands if v not in held)
            return not held <= body.constants.keys() and all(map(_is_given, others))
        if op.name == "arith.divf":
            return self.holds(nest, op.operands[0], at, depth)
        if op.name in _INTEGERS:
            return True
        return op.name in _ALIKE and all(self.holds(nest, v, at, depth) for v in op.operands)

    def _is_sum(self, nest: Nest, loop: For, number: int, at: At, depth: int) -> bool:
        """Whether a loop adds products of what a program is given, or moderate numbers."""
        body = self.body(nest)
        term = _term(body, loop, number, ("arith.addf",))
        if term is None or not self.holds(nest, loop.inits[number], at, depth):
            return False
        made = body.makers.get(term)
        while isinstance(made, Op) and made.name in CASTS:
            made = body.makers.get(made.operands[0])
        if isinstance(made, Op) and made.name == "arith.mulf":
            return not body.constants.keys() & set(made.operands)
        return self.holds(nest, term, at, depth)

    def _load(self, load: Load, at: At, depth: int, more: bool) -> bool:
        """Whether an element is moderate, by the only nest that makes its array."""
        made = self._producer_of(load, at)
        return made is not None and self.holds(*made, depth - 1, more=more)

    def _producer_of(self, load: Load, at: At) -> tuple[Nest, Value, At] | None:
        """The nest and the value that are loaded, and the iteration that it is of."""
        if load.where or not self.users.is_only_accessed(load.buffer.base):
            return None
        candidate = Candidate.of(self.users, load.buffer)
        if candidate is None:
            return None
        inside = candidate.store.variables()
        found = digits(load.buffer, candidate.store.index, list(inside))
        if found is None:
            return None
        index = [e.substitute(at) for e in load.index]
        there = iteration_at(found, load.buffer.shape, index)
        return candidate.producer, candidate.store.value, there

    def is_low(self, nest: Nest, value: Value, most: float, depth: int = _DEPTH) -> bool:
        """Whether a value is a finite number up to ``most``, or a moderate one plus such a number.

        As a program writes it in full: nothing of what a sum has passed through is looked at.
        """
        body = self.body(nest)
        if value in body.constants:
            return -math.inf < body.constants[value] <= most
        node = body.makers.get(value)
        if isinstance(node, Load) and depth:
            made = self._producer_of(node, {})
            return made is not None and self.is_low(*made[:2], most, depth - 1)
        if not isinstance(node, Op) or node.name not in ("arith.addf", "arith.subf"):
            return False
        sign = 1.0 if node.name == "arith.addf" else -1.0
        number = body.constants.get(node.operands[1], 0.0) * sign
        return -math.inf < number <= most and self.holds(nest, node.operands[0], {}, depth)

    def _truth(self, nest: Nest, value: Value, at: At, depth: int) -> bool | None:
        """The outcome of a condition of places, if there is only one."""
        body = self.body(nest)
        if value in body.constants:
            return bool(body.constants[value])
        if value in body.conditions:
            return _outcome(body.conditions[value], at)
        node = body.makers.get(value)
        if isinstance(node, Load) and depth:
            made = self._producer_of(node, at)
            return None if made is None else self._truth(*made, depth - 1)
        if not isinstance(node, Op) or node.name not in _LOGIC:
            return None
        first, second = (self._truth(nest, v, at, depth) for v in node.operands)
        if node.name == "arith.xori":
            return None if first is None or second is None else first != second
        deciding = node.name == "arith.ori"
        if deciding in (first, second):
            return deciding
        return None if first is None or second is None else not deciding

    def _places(self, nest: Nest, loop: For, term: Value, depth: int) -> Iterator[Expr]:
        """Iterations of a loop, one of them likely outside of all masks.

        The first one, the last one, and those where a condition is just met, in terms of the loops
        around.
        """
        last = loop.var.extent - 1
        yield Expr(0)
        yield Expr(last)
        exprs: dict[Expr, None] = {}
        self._compared(nest, term, {}, depth, exprs)
        for at in dict.fromkeys(at for expr in exprs for at in _zeros_of(expr, loop.var)):
            low, high = at.tight_range()
            if low >= 0 and high <= last:
                yield at

    def _compared(
        self, nest: Nest, value: Value, at: At, depth: int, found: dict[Expr, None]
    ) -> None:
        """Collect what the conditions behind a value compare with zero."""
        body = self.body(nest)
        for node in slice_of([value], body.makers):
            if isinstance(node, Load):
                made = self._producer_of(node, at) if depth else None
                if made is not None:
                    self._compared(*made, depth - 1, found)
            for result in node.defines:
                condition = body.conditions.get(result)
                if condition is not None:
                    for expr in (*condition.if_true, *condition.if_false):
                        found[expr.substitute(at)] = None


def _is_given(node: Node | None) -> bool:
    """Whether a node loads what the program is given."""
    return isinstance(node, Load) and node.buffer.base.kind == "input"


def maximum_term(body: Body, loop: For, number: int) -> Value | None:
    """The values whose largest a loop carries; None if it carries anything else."""
    return _term(body, loop, number, MAXIMA)


def _term(body: Body, loop: For, number: int, names: tuple[str, ...]) -> Value | None:
    """The value that a loop combines with a carried one in each iteration."""
    node = body.makers.get(loop.yields[number])
    argument = loop.arguments[number]
    if not isinstance(node, Op) or node.name not in names or argument not in node.operands:
        return None
    terms = [v for v in node.operands if v is not argument]
    return terms[0] if len(terms) == 1 else None


def _zeros_of(expr: Expr, var: Var) -> Iterator[Expr]:
    """Where an expression of a variable is zero."""
    factor = expr.coefficient(var)
    if factor in (1, -1):
        rest = expr - Expr.of(var) * factor
        if not rest.depends_on(var):
            yield rest * -factor


def _outcome(condition: Condition, at: At) -> bool | None:
    """The outcome of a condition at some places, if there is only one."""
    for outcome in (True, False):
        needed = condition.needed_for(outcome)
        if needed and all(e.substitute(at).tight_range()[0] >= 0 for e in needed):
            return outcome
        if any(e.substitute(at).tight_range()[1] < 0 for e in needed):
            return not outcome
    return None
