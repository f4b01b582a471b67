"""roll-nests: small nests that do the same a constant further on are iterations of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.cost.small_nests import is_small
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.fusion.independence import independent
from polyblocks.affine.mlir.regions import stands_before
from polyblocks.affine.model import (
    AffineAccess,
    For,
    Nest,
    Node,
    Op,
    Opaque,
    Sequence,
    Value,
    transform_indices,
    walk,
)
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class RollNestsPass(NestPass):
    """Launch nests together that are too small for a launch of their own.

    Taken are nests of the same loops and operations whose indices differ by constants, the same
    from each nest to the next: such as the lower and the upper margin of a padded array. They
    store to disjoint places, which none of them loads.

    Before::

        affine.for %j = 0 to 100 { affine.store %zero, %b[0, %j] }
        affine.for %j = 0 to 100 { affine.store %zero, %b[5, %j] }

    After::

        affine.for %n = 0 to 2 {
          affine.for %j = 0 to 100 { affine.store %zero, %b[%n * 5, %j] } }
    """

    name: ClassVar[str] = "roll-nests"
    breaks: ClassVar[frozenset[str]] = frozenset({facts.UNFUSED})
    #: Nests that lie between two of them, at most.
    reach: int = 8

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Roll nests into the first of each group."""
        if context.options.polyblocks_disable_affine_fusion:
            return
        position = 0
        while position < len(sequence.items):
            nest = sequence.items[position]
            position += 1
            if not isinstance(nest, Nest) or not is_small(nest, context.target):
                continue
            group, apart = self._group(sequence.items, position - 1)
            if len(group) == 1:
                continue
            context.decide(self.name, nest.name, "rolled", with_=[n.name for n in group[1:]])
            _roll(nest, len(group), apart)
            nest.sources = list(dict.fromkeys(s for each in group for s in each.sources))
            for other in group[1:]:
                sequence.items.remove(other)

    def _group(self, items: list[Nest | Opaque], position: int) -> tuple[list[Nest], list[int]]:
        """The nests that can run together with one, it first, and how far they are apart."""
        first = items[position]
        assert isinstance(first, Nest)
        group, apart = [first], None
        between: list[Nest | Opaque] = []
        for item in items[position + 1 : position + 1 + self.reach]:
            found = _distances(group[-1], item) if isinstance(item, Nest) else None
            fits = found is not None and any(found) and apart in (None, found)
            if fits and isinstance(item, Nest) and stands_before(item, first):
                others = [*group, *between]
                if all(independent(item, other) for other in others):
                    group, apart = [*group, item], found
                    continue
            between.append(item)
        return group, apart or []


def _distances(first: Nest, second: Nest) -> list[int] | None:
    """By how much each expression of the second nest exceeds the first one's; None: not so."""
    values: dict[Value, Value] = {}
    variables: dict[Var, Expr] = {}
    mine, theirs = list(walk(first.body)), list(walk(second.body))
    if len(mine) != len(theirs):
        return None
    found = []
    for a, b in zip(mine, theirs, strict=True):
        if not _equal_node(a, b, values):
            return None
        if isinstance(a, For) and isinstance(b, For):
            variables[b.var] = Expr.of(a.var)
            values.update(zip(b.arguments, a.arguments, strict=True))
        values.update(zip(b.defines, a.defines, strict=True))
        for e, f in zip(a.exprs, b.exprs, strict=True):
            difference = f.substitute(variables) - e
            if not difference.is_constant:
                return None
            found.append(difference.const)
    # Results of loops are known when their bodies are.
    given, wanted = ([v for n in nodes for v in _yields(n)] for nodes in (theirs, mine))
    return found if [values.get(v, v) for v in given] == wanted else None


def _yields(node: Node) -> list[Value]:
    return node.yields if isinstance(node, For) else []


def _equal_node(a: Node, b: Node, values: dict[Value, Value]) -> bool:
    """Whether two nodes do the same but for their expressions, if operands are the same."""
    if type(a) is not type(b):
        return False
    if isinstance(a, For) and isinstance(b, For):
        mine, theirs = ((f.var.extent, len(f.lower), len(f.upper), len(f.body)) for f in (a, b))
        same = mine == theirs
        given, wanted = b.inits, a.inits
    else:
        same, given, wanted = True, b.uses, a.uses
    if isinstance(a, Op) and isinstance(b, Op):
        types = [v.type for v in a.results], [v.type for v in b.results]
        same = (a.name, a.attributes, types[0]) == (b.name, b.attributes, types[1])
    elif isinstance(a, AffineAccess) and isinstance(b, AffineAccess):
        same = a.buffer is b.buffer and len(a.exprs) == len(b.exprs)
    return same and [values.get(v, v) for v in given] == wanted


def _roll(nest: Nest, count: int, apart: list[int]) -> None:
    """Let a nest do the work of ``count`` nests, at distances ``apart``."""
    var, distances = Var(count), iter(apart)

    def on(expr: Expr) -> Expr:
        return expr + Expr.of(var) * next(distances)

    transform_indices(nest.body, on)
    nest.replace([For(var, nest.body)])
