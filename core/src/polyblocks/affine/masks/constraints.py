"""Bounds of a loop that decide an affine condition outside."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from polyblocks.affine.analysis.known_values import KnownValues
from polyblocks.affine.analysis.outcomes import integer_relation
from polyblocks.affine.expr import Div, Expr, Mod, Var
from polyblocks.affine.model import Index, Node, Op, Value, walk

#: Which variables stay in an expression: a variable, and whether the value grows with it.
Kept = Callable[[Var, bool], bool]


@dataclass(frozen=True)
class Bound:
    """Values of a variable: below ``at`` if ``upper``, else from ``at`` on."""

    upper: bool
    at: Expr

    def rounded(self, step: int, around: Collection[Var]) -> Bound:
        """The smallest superset whose end is a multiple of ``step`` for whole blocks.

        Args:
            step: the number.
            around: variables of the end that do not count blocks.
        """
        blocks = Expr(0, {a: c for a, c in self.at.terms if isinstance(a, Var) and a not in around})
        end = self.at - blocks
        end = end + (step - 1) if self.upper else end
        return Bound(self.upper, (end // step) * step + blocks)

    def implies(self, other: Bound) -> bool:
        """Whether what is outside is surely outside of another bound of the same kind."""
        more = self.at - other.at if self.upper else other.at - self.at
        return more.tight_range()[0] >= 0

    def cuts(self, var: Var) -> bool:
        """Whether a variable has values outside."""
        low, high = self.at.range()
        return low < var.extent if self.upper else high > 0


@dataclass(frozen=True)
class Condition:
    """A comparison of affine integers.

    Attributes:
        if_true: expressions none of which is negative where it holds.
        if_false: the same where it does not.
    """

    if_true: tuple[Expr, ...]
    if_false: tuple[Expr, ...]

    def holds(self, at: Mapping[Var, int]) -> bool:
        """Whether it holds for some values of the variables."""
        if self.if_true:
            return all(expr.evaluate(at) >= 0 for expr in self.if_true)
        return not all(expr.evaluate(at) >= 0 for expr in self.if_false)

    def needed_for(self, outcome: bool) -> tuple[Expr, ...]:
        """Expressions none of which is negative where it has an outcome."""
        return self.if_true if outcome else self.if_false


def conditions_of(nodes: Iterable[Node]) -> dict[Value, Condition]:
    """The comparisons of affine integers in code, by their results."""
    known = KnownValues()
    found: dict[Value, Condition] = {}
    for node in walk(nodes):
        if isinstance(node, Index):
            known.exprs[node.result] = node.expr
        elif isinstance(node, Op) and len(node.results) == 1:
            known.learn(node)
            if node.name == "arith.cmpi":
                condition = _condition(node, known)
                if condition is not None:
                    found[node.results[0]] = condition
    return found


def _condition(op: Op, known: KnownValues) -> Condition | None:
    left, right = (known.exprs.get(v) for v in op.operands)
    if left is None or right is None:
        return None
    relation = integer_relation(op)
    if relation.unsigned and (left.range()[0] < 0 or right.range()[0] < 0):
        return None
    more = left - right
    less = more * -1
    outcomes: dict[str, tuple[tuple[Expr, ...], tuple[Expr, ...]]] = {
        "=": ((more, less), ()),
        "≠": ((), (more, less)),
        "<": ((less - 1,), (more,)),
        "≤": ((less,), (more - 1,)),
        ">": ((more - 1,), (less,)),
        "≥": ((more,), (less - 1,)),
    }
    return Condition(*outcomes[relation.sign])


def bound_of(
    number: Expr, var: Var, around: Collection[Var], outer: Collection[Var]
) -> Bound | None:
    """Values of a variable; for all others an expression is negative.

    Args:
        number: the expression.
        var: the variable.
        around: variables that may be in the bound.
        outer: others that may be if they move the expression as the variable does, as the numbers
            of blocks do whose columns it counts. The bound holds for all values of the rest.

    Returns:
        the bound; None if the variable is not in the expression, or in several of its terms.
    """
    terms = [(atom, c) for atom, c in number.terms if Expr(0, {atom: 1}).depends_on(var)]
    if len(terms) != 1:
        return None
    ((atom, factor),) = terms
    if isinstance(atom, Mod):
        return None
    grows = factor > 0

    def kept(other: Var, more: bool) -> bool:
        return other in around or (other in outer and more is grows)

    most = largest(number - Expr(0, {atom: factor}), kept)
    if isinstance(atom, Var):
        if grows:
            return Bound(False, (most // factor) * -1)
        return Bound(True, most // -factor + 1)
    if grows:
        return bound_of(atom.dividend + (most // factor) * atom.divisor, var, around, outer)
    # The quotient is at most most // -factor.
    last = (most // -factor) * atom.divisor + (atom.divisor - 1)
    return bound_of(last - atom.dividend, var, around, outer)


def largest(expr: Expr, kept: Collection[Var] | Kept, more: bool = True) -> Expr:
    """The largest value of an expression, or the least one, in terms of the variables kept."""
    if not callable(kept):
        variables = kept
        return largest(expr, lambda var, _: var in variables, more)
    result = Expr(expr.const)
    for atom, factor in expr.terms:
        upwards = (factor > 0) == more
        if isinstance(atom, Var):
            if kept(atom, upwards):
                value = Expr.of(atom)
            else:
                value = Expr(max(atom.extent - 1, 0) if upwards else 0)
        elif isinstance(atom, Div):
            value = largest(atom.dividend, kept, upwards) // atom.divisor
        elif all(kept(v, upwards) for v in atom.dividend.variables()):
            value = Expr(0, {atom: 1})
        else:
            value = Expr(atom.divisor - 1 if upwards else 0)
        result = result + value * factor
    return result
