"""block-summation: a long sum is a sum of sums, so that rounding errors stay small."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.analysis.reductions import ROUNDING, ReductionNest, identities
from polyblocks.affine.element import element_bytes
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import For, Node, Op, Sequence, Value, clone
from polyblocks.affine.ops import like
from polyblocks.affine.subnests import change_subnests
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class BlockSummationPass(NestPass):
    """Cut the loops of sums and products into blocks that start from nothing.

    The error of a chain of additions grows with its length; that of a cascade, with the lengths
    of its levels. A loop inside another one starts anew as well: else vector code would keep
    adding small numbers to the large one that the outer loop carries.

    The innermost blocks are the longer the more lanes they will be spread over, so that the chain
    of one lane has the same length, and a block takes the same time, on every chip.

    Before, for vectors of sixteen floats::

        %r = affine.for %k = 0 to 1000000 iter_args(%s = %z) { ... arith.addf %s, %x ... }

    After::

        %r = affine.for %b = 0 to 245 iter_args(%s = %z) {
          %p = affine.for %k = 0 to min(4096, 1000000 - 4096 * %b) iter_args(%t = %zero) { ... }
          %n = arith.addf %s, %p : f32
          affine.yield %n : f32 }
    """

    name: ClassVar[str] = "block-summation"
    breaks: ClassVar[frozenset[str]] = frozenset({facts.WHOLE_LOOPS})
    #: Vectors of a block of the innermost loop; several of them are summed up side by side.
    vectors: int = 256
    #: Iterations of the loops around it.
    chain: int = 16

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Cut the sums of every nest and sub-nest."""

        def change(nodes: list[Node], around: list[For]) -> list[Node] | None:
            del around
            return self._change(nodes, context.target.vector_bits)

        for nest in sequence.nests():
            if change_subnests(nest, change):
                context.decide(self.name, nest.name, "cascaded")

    def _change(self, nodes: list[Node], vector_bits: int) -> list[Node] | None:
        shape = ReductionNest.of_nodes(nodes)
        combiners = None if shape is None else shape.combiners()
        if shape is None or combiners is None:
            return None
        if not any(op.name in ROUNDING for op in combiners) or identities(combiners) is None:
            return None
        if any(loop.bounded for loop in shape.reductions):
            return None
        last = len(shape.reductions) - 1
        longest = self.vectors * _lanes(combiners, vector_bits)
        levels: list[_Level] = []
        for i, loop in enumerate(shape.reductions):
            extent = loop.var.extent
            if i == last:
                # A few iterations more are no reason for another loop.
                block = longest if extent > 2 * longest else extent
            else:
                block = min(self.chain, extent)
            levels += _levels(loop.var, block, self.chain)
        if len(levels) == 1:
            return None
        built, results = _build(shape, combiners, levels, list(shape.reductions[0].inits))
        # Later code uses the results of the old loop.
        (chain,) = (n for n in built if isinstance(n, For))
        assert chain.results == results
        chain.results = shape.reductions[0].results
        inside = [*shape.before, *built, *shape.after]
        if not shape.parallel:
            return inside
        shape.parallel[-1].body = inside
        return nodes


def _lanes(combiners: list[Op], vector_bits: int) -> int:
    """Elements of a vector that carries the results of all combiners; one without vectors."""
    widest = max(element_bytes(op.results[0].type) for op in combiners)
    return max(1, vector_bits // (8 * widest))


@dataclass(frozen=True)
class _Level:
    """One loop of a cascade.

    Attributes:
        of: the variable of the loop that was cut.
        var: the variable of this level.
        stride: how far one iteration of it moves ``of``.
    """

    of: Var
    var: Var
    stride: int


def _levels(var: Var, block: int, chain: int) -> list[_Level]:
    """The loops, from the outside in, that run over ``var`` in blocks."""
    sizes = [(block, 1)]
    stride = block
    while (count := -(-var.extent // stride)) > 1:
        sizes.append((min(count, chain), stride))
        stride *= chain
    return [_Level(var, Var(size), step) for size, step in reversed(sizes)]


def _build(
    shape: ReductionNest, combiners: list[Op], levels: list[_Level], starts: list[Value]
) -> tuple[list[Node], list[Value]]:
    """The cascade's nodes and what it results in."""
    places: dict[Var, Expr] = {}
    return _level(shape, combiners, levels, 0, places, starts)


def _level(
    shape: ReductionNest,
    combiners: list[Op],
    levels: list[_Level],
    position: int,
    places: dict[Var, Expr],
    starts: list[Value],
) -> tuple[list[Node], list[Value]]:
    level = levels[position]
    base = places.get(level.of, Expr(0))
    # The last block of a level may be shorter.
    end = (Expr(level.of.extent + level.stride - 1) - base) // level.stride
    upper = (end,) if end.range()[0] < level.var.extent else ()
    here = {**places, level.of: base + Expr.of(level.var) * level.stride}
    arguments = [Value(v.type) for v in starts]
    results = [Value(v.type) for v in starts]
    if position == len(levels) - 1:
        innermost = shape.reductions[-1]
        values = dict(zip(innermost.arguments, arguments, strict=True))
        body = clone(shape.inner, values, dict(here))
        yields = [values.get(v, v) for v in innermost.yields]
    else:
        zeros = identities(combiners)
        assert zeros is not None
        body = list[Node](zeros)
        nodes, sums = _level(
            shape, combiners, levels, position + 1, here, [z.results[0] for z in zeros]
        )
        body += nodes
        yields = [Value(v.type) for v in starts]
        for op, a, b, c in zip(combiners, arguments, sums, yields, strict=True):
            body.append(like(op, [a, b], c))
    loop = For(level.var, body, starts, arguments, results, yields, None, (), upper)
    return [loop], results
