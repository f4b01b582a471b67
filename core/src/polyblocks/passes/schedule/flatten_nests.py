"""flatten-nests: neighbouring loops that walk memory without a gap become one loop."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.access import address
from polyblocks.affine.analysis.reductions import ReductionNest
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.flat_views import FlatViews, flattenable
from polyblocks.affine.model import (
    AffineAccess,
    For,
    Index,
    IndirectAccess,
    Load,
    Node,
    Sequence,
    walk,
)
from polyblocks.affine.subnests import change_subnests, parallel_shell
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class FlattenNestsPass(NestPass):
    """Join two perfectly nested loops if all accesses treat them as one index.

    Parallel loops are joined with each other, and so are the loops of a reduction.

    Buffers of such a nest are read through one-dimensional views, so that a tensor with a short
    innermost extent still gives long loops.

    Before::

        affine.for %i = 0 to 100 { affine.for %j = 0 to 3 {
          %x = affine.load %a[%i, %j] : memref<100x3xf32> ... } }

    After::

        %flat = memref.reinterpret_cast %a to offset: [0], sizes: [300], strides: [1]
        affine.for %t = 0 to 300 { %x = affine.load %flat[%t] ... }
    """

    name: ClassVar[str] = "flatten-nests"
    needs: ClassVar[frozenset[str]] = frozenset({facts.NESTS, facts.PLAIN_LOOPS, facts.WHOLE_LOOPS})

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Flatten every nest and sub-nest as far as it goes."""
        del context
        views = FlatViews(sequence)
        for nest in sequence.nests():

            def change(nodes: list[Node], around: list[For]) -> list[Node] | None:
                del around
                return _flatten(nodes, views)

            change_subnests(nest, change)


def _flatten(nodes: list[Node], views: FlatViews) -> list[Node] | None:
    shell, body = parallel_shell(nodes)
    shape = ReductionNest.of_nodes(nodes)
    chain = [] if shape is None else list(shape.reductions)
    inside = list(walk(body))
    gathered = {n.buffer for n in inside if isinstance(n, IndirectAccess)}
    flat = [
        n
        for n in inside
        if isinstance(n, AffineAccess) and flattenable(n.buffer) and n.buffer not in gathered
    ]
    exprs = {id(n): address(n.buffer, n.index) for n in flat}
    exprs |= {id(n): n.expr for n in inside if isinstance(n, Index)}
    known = {id(n) for n in flat}
    rest = [n for n in inside if id(n) not in known]
    fixed = _fixed_variables([*shell, *chain], inside, rest)
    # A loop that was one before may stand for two indices: its address is one all the same.
    joined = any(
        len(n.index) > 1 and _divides(n.index) and not _divides([exprs[id(n)]]) for n in flat
    )
    for loops in (chain, shell):
        while (pair := _joinable(loops, list(exprs.values()), fixed)) is not None:
            outer, inner = loops[pair], loops[pair + 1]
            var = Var(outer.var.extent * inner.var.extent, "t")
            for key, expr in exprs.items():
                exprs[key] = _join(expr, outer.var, inner.var, var)
            one = For(var, inner.body, outer.inits, inner.arguments, outer.results, inner.yields)
            loops[pair : pair + 2] = [one]
            if loops is chain and pair > 0:
                loops[pair - 1].body = [one]
            joined = True
    if not joined:
        return None
    for node in inside:
        if isinstance(node, Index):
            node.expr = exprs[id(node)]
    for access in flat:
        access.index = (exprs[id(access)],)
        access.buffer = views.of(access.buffer)
    if shape is not None:
        body = [*shape.before, chain[0], *shape.after]
    for loop in reversed(shell):
        body = [For(loop.var, body, lower=loop.lower, upper=loop.upper)]
    return body


def _divides(exprs: Iterable[Expr]) -> bool:
    return any(not isinstance(atom, Var) for e in exprs for atom, _ in e.terms)


def _fixed_variables(loops: list[For], inside: list[Node], nodes: list[Node]) -> set[Var]:
    """Variables that bounds, conditions, or indices of accesses that stay speak of."""
    exprs = [e for loop in loops for e in loop.bounds]
    exprs += [e for node in inside if isinstance(node, Load) for e in node.where]
    for node in nodes:
        if isinstance(node, AffineAccess):
            exprs += node.index
        elif isinstance(node, For):
            exprs += node.bounds
    return {v for e in exprs for v in e.variables()} | {f.var for f in loops if f.bounded}


def _joinable(loops: list[For], exprs: list[Expr], fixed: set[Var]) -> int | None:
    """Position of an outer loop that can be joined with the next one."""
    for i in range(len(loops) - 2, -1, -1):
        outer, inner = loops[i].var, loops[i + 1].var
        if outer in fixed or inner in fixed:
            continue
        ok = True
        for expr in exprs:
            a, b = expr.coefficient(outer), expr.coefficient(inner)
            if a is None or b is None or a != b * inner.extent:
                ok = False
                break
        if ok:
            return i
    return None


def _join(expr: Expr, outer: Var, inner: Var, joined: Var) -> Expr:
    factor = expr.coefficient(inner) or 0
    rest = Expr(expr.const, {a: c for a, c in expr.terms if a is not outer and a is not inner})
    return rest + Expr.of(joined) * factor
