"""A producer's code for an element whose place is known at run time only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from polyblocks.affine.analysis.coverage import iteration_at
from polyblocks.affine.analysis.dataflow import variables_of
from polyblocks.affine.analysis.known_values import KnownValues
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import Buffer, Index, IndirectLoad, Load, Node, Op, Value, clone, walk
from polyblocks.affine.ops import Ops


def known_exprs(nodes: Iterable[Node]) -> Mapping[Value, Expr]:
    """Integers in nodes that are affine in the loop variables."""
    known = KnownValues()
    for node in walk(nodes):
        if isinstance(node, Index):
            known.exprs[node.result] = node.expr
        elif isinstance(node, Op) and len(node.results) == 1:
            known.learn(node)
    return known.exprs


def body_at_values(
    body: list[Node],
    digits: Mapping[Var, tuple[int, int]],
    gather: IndirectLoad,
    exprs: Mapping[Value, Expr],
    values: dict[Value, Value],
) -> list[Node] | None:
    """A producer's code for the gathered element; None if unknown.

    Loads along a dimension whose place is not affine become gathers; the other dimensions are
    loops' as before.

    Args:
        body: what the producer computes in one iteration, without loops and stores.
        digits: where in the buffer its loops count, see :func:`coverage.digits`.
        gather: the load at run-time indices.
        exprs: which integers are affine in the loop variables around the gather.
        values: is extended by what the producer's values have become.
    """
    extents = zip(gather.index, gather.buffer.shape, strict=True)
    affine = [_inside(exprs.get(v), n) for v, n in extents]
    moving = MovedCode({}, gather.index[0].type if gather.index else None)
    for var, (dimension, _) in digits.items():
        if affine[dimension] is None:
            if var.extent != gather.buffer.shape[dimension]:
                # A digit of a number that is known at run time: a division for each element.
                return None
            moving.places[var] = gather.index[dimension]
    fixed = {v: where for v, where in digits.items() if v not in moving.places}
    at = iteration_at(fixed, gather.buffer.shape, [e or Expr(0) for e in affine])
    for node in body:
        if not moving.take(node, at, values):
            return None
    return moving.out


def _inside(expr: Expr | None, extent: int) -> Expr | None:
    """An affine place that is surely within a dimension."""
    if expr is None:
        return None
    low, high = expr.range()
    return expr if low >= 0 and high < extent else None


@dataclass
class MovedCode:
    """Code at indices that are values in part.

    Attributes:
        places: what the variables are whose values are known at run time only.
        type: of indices.
        out: the code so far.
    """

    places: dict[Var, Value]
    type: object
    out: list[Node] = field(default_factory=list)

    def take(self, node: Node, at: dict[Var, Expr], values: dict[Value, Value]) -> bool:
        """Append the copy of a node; False if it cannot be copied."""
        exprs = node.exprs
        if variables_of([node]).isdisjoint(self.places):
            self.out += clone([node], values, at)
            return True
        if isinstance(node, Load) and node.where:
            return False
        found = [self.value(e, at) for e in exprs]
        places = [v for v in found if v is not None]
        if len(places) != len(found):
            return False
        if isinstance(node, Index):
            values[node.result] = places[0]
        else:
            assert isinstance(node, Load)
            values[node.result] = Value(node.result.type)
            self.out.append(IndirectLoad(values[node.result], node.buffer, places, node.location))
        return True

    def value(self, expr: Expr, at: dict[Var, Expr]) -> Value | None:
        """An affine expression of places as a value; None with quotients of what is not known."""
        rest = Expr(expr.const)
        terms: list[Value] = []
        for atom, factor in expr.terms:
            part = Expr(0, {atom: factor})
            if not any(v in self.places for v in part.variables()):
                rest = rest + part
            elif isinstance(atom, Var):
                terms.append(self._times(self.places[atom], factor))
            else:
                return None
        rest = rest.substitute(at)
        if rest != Expr(0) or not terms:
            terms.append(self._index(rest))
        total = terms[0]
        for term in terms[1:]:
            total = self._ops.op("arith.addi", [total, term])
        return total

    def _times(self, value: Value, factor: int) -> Value:
        if factor == 1:
            return value
        return self._ops.op("arith.muli", [value, self._index(Expr(factor))])

    def _index(self, expr: Expr) -> Value:
        result = Value(self.type)
        self.out.append(Index(result, expr))
        return result

    @property
    def _ops(self) -> Ops:
        return Ops(self.out)


def gathers(nodes: Iterable[Node], buffer: Buffer) -> list[IndirectLoad]:
    """The loads of a buffer at run-time indices."""
    return [n for n in walk(nodes) if isinstance(n, IndirectLoad) and n.buffer is buffer]
