"""Chains whose steps are shared out: what each part of them leaves, and the nest that joins it.

Sums of a part are those of exponentials less the part's own largest score. Where they are joined,
each is rescaled to the largest one of all parts: as in a block of steps, see
:mod:`polyblocks.affine.fusion.chains.row_kinds`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from polyblocks.affine.analysis.reduction_chains import StraightLineCode
from polyblocks.affine.element import element_bytes
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.fusion.chains.chained_products import Link, ProductChain
from polyblocks.affine.fusion.chains.link_code import LinkCode
from polyblocks.affine.fusion.chains.row_kinds import Rescaling
from polyblocks.affine.masks.absence import constants_of
from polyblocks.affine.model import (
    Buffer,
    For,
    Load,
    Node,
    Op,
    Store,
    Value,
    clone,
    nested,
    remove_dead,
)
from polyblocks.affine.ops import Ops


class PartialSums:
    """Buffers of the partial results of a chain: numbers of rows, and totals.

    Args:
        chain: whose reductions begin with nothing, see :func:`has_parts`.
        parts: how many.
        blocks: of a part.
    """

    def __init__(self, chain: ProductChain, parts: int, blocks: int) -> None:
        self.chain, self.blocks = chain, blocks
        self.part = Var(parts, "p")
        shape = (parts, *(v.extent for v in chain.rows))
        self.numbers = {
            link: _buffer(shape, link.reduction.results[0])
            for link in chain.links
            if link.reduction is not None
        }
        (column,) = chain.product.columns
        (total,) = chain.product.reduction.loops[0].results
        self.totals = _buffer((*shape, column.extent), total)

    @property
    def buffers(self) -> list[Buffer]:
        """All of them."""
        return [*self.numbers.values(), self.totals]

    @property
    def nbytes(self) -> int:
        """Bytes of all."""
        return sum(b.nbytes for b in self.buffers)

    def bounds(self, number: Var) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
        """The first block of a part, and the one after its last one, among all of ``number``."""
        first = Expr.of(self.part) * self.blocks
        return (first,), (first + self.blocks,)

    def _at(self, part: Var) -> tuple[Expr, ...]:
        return Expr.of(part), *(Expr.of(v) for v in self.chain.rows)

    def stores(self, results: dict[Link, Value]) -> list[Node]:
        """Leave a part's numbers of a row."""
        at = self._at(self.part)
        return [Store(value, self.numbers[link], at) for link, value in results.items()]

    def store_total(self, total: Value, column: Var) -> Node:
        """Leave a part's total of a row and a column."""
        return Store(total, self.totals, (*self._at(self.part), Expr.of(column)))

    def joining(self, rescaling: Rescaling) -> list[Node]:
        """The nest that joins the parts, in their order.

        ::

            for rows { for columns {
              m = max over p of m[p]
              l, o = for p carries l, o {
                f = exp(c(m[p]) - c(m))
                l + l[p] * f, o + total[p, column] * f }
              ... o ... l ... } }
        """
        code, out = LinkCode(self.chain, rescaling), Ops()
        (own,) = self.chain.product.columns
        column, most = Var(own.extent, "d"), rescaling.maximum
        results: dict[Link, Value] = {}
        if most is not None:
            loop = self._over_parts([most], [code.initial(most, out)], column)
            out.out.append(loop)
            (results[most],) = loop.results
        sums = [link for link in self.numbers if link is not most]
        inits = [code.initial(link, out) for link in sums]
        zero = code.zero(out)

        def factor(part: Var, inside: Ops) -> Value | None:
            """Of the sums of a part."""
            if most is None:
                return None
            least = Value(results[most].type)
            inside.out.append(Load(least, self.numbers[most], self._at(part)))
            return code.factor(most, least, results[most], inside)

        scaled = {None, *rescaling.linear}
        loop = self._over_parts([*sums, None], [*inits, zero], column, factor, scaled)
        out.out.append(loop)
        results.update(zip(sums, loop.results, strict=False))
        correction = code.finish(results, out)
        code.finish_sum(loop.results[-1], correction, column, out)
        nest = clone(nested([*self.chain.rows, column], out.out), {}, {})
        remove_dead(nest)
        return nest

    def _over_parts(
        self,
        links: list[Link | None],
        inits: list[Value],
        column: Var,
        factor: Callable[[Var, Ops], Value | None] = lambda part, inside: None,
        scaled: Collection[Link | None] = (),
    ) -> For:
        """A loop over parts that joins what they left of links, and, for None, of totals."""
        part, body, combiners = Var(self.part.extent, "p"), Ops(), _combiners(self.chain)
        arguments, yields = [Value(v.type) for v in inits], []
        scale = factor(part, body)
        for link, argument in zip(links, arguments, strict=True):
            loaded, at = Value(argument.type), self._at(part)
            if link is None:
                body.out.append(Load(loaded, self.totals, (*at, Expr.of(column))))
            else:
                body.out.append(Load(loaded, self.numbers[link], at))
            if scale is not None and link in scaled:
                loaded = body.op("arith.mulf", [loaded, scale])
            yields.append(body.like(combiners[link], [argument, loaded]))
        return For(part, body.out, inits, arguments, [Value(v.type) for v in inits], yields)


def has_parts(chain: ProductChain) -> bool:
    """Whether parts of a chain's steps can be joined: sums begin with zero.

    The largest of numbers may begin with any number. Numbers of a row that others read are stored
    where a kernel has all of its steps.
    """
    if chain.kept:
        return False
    product = chain.product
    reductions = [(product.reduction.loops[0], product.before)]
    reductions += [(n.reduction, n.body) for n in chain.links if n.reduction is not None]
    return all(
        op.name != "arith.addf" or _is_zero(loop.inits[0], nodes)
        for (loop, nodes), op in zip(reductions, _combiners(chain).values(), strict=True)
    )


def _combiners(chain: ProductChain) -> dict[Link | None, Op]:
    """The operations that join values of the last product, and of each link's reduction."""
    assert chain.product.combiners is not None
    (last,) = chain.product.combiners
    found: dict[Link | None, Op] = {None: last}
    for link in chain.links:
        if link.reduction is not None:
            joined = StraightLineCode(link.reduction.body).chain(link.reduction.yields[0])
            assert joined is not None
            found[link] = joined.last
    return found


def _is_zero(value: Value, nodes: list[Node]) -> bool:
    found: list[Node] = [n for n in nodes if isinstance(n, Op) and value in n.results]
    constant = constants_of(found).get(value)
    return constant is not None and constant.value == 0


def _buffer(shape: tuple[int, ...], of: Value) -> Buffer:
    size = element_bytes(of.type)
    return Buffer(shape, of.type, "alloc", bytes_per_element=size)
