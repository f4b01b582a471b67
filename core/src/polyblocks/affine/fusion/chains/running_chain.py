"""Chains of products as one nest: rows, and in each row blocks of steps with running numbers."""

from __future__ import annotations

from dataclasses import dataclass

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.fusion.chains.chained_products import Link, ProductChain
from polyblocks.affine.fusion.chains.link_code import LinkCode
from polyblocks.affine.fusion.chains.masked_blocks import (
    bound_absent_blocks,
    bound_blocks,
    masks_at_borders,
    most_runs,
)
from polyblocks.affine.fusion.chains.partial_sums import PartialSums
from polyblocks.affine.fusion.chains.row_kinds import Rescaling
from polyblocks.affine.fusion.chains.score_scale import ScoreScale
from polyblocks.affine.model import (
    Alloca,
    Buffer,
    For,
    Load,
    Node,
    Store,
    Value,
    clone,
    nested,
    remove_dead,
    walk,
)
from polyblocks.affine.ops import Ops


def running_chain(
    chain: ProductChain,
    rescaling: Rescaling,
    block: int,
    power: str = "",
    partial: PartialSums | None = None,
    scale: ScoreScale | None = None,
) -> list[Node]:
    """The nest that computes a chain, a block of ``block`` steps after the other.

    With ``power``, LLVM's function of a power of two that is as exact as numbers of 16 bits need,
    exponentials that become such numbers are computed by it. With ``partial``, a loop around goes
    over parts of the blocks, and what each of them carries in the end is stored there. With
    ``scale``, exponents are scaled and not scores; not with parts.

    ::

        for rows {
          total[columns] = 0
          m, l = for blocks carries m, l {
            for steps { score[step] = ... }
            m' = max(m, score[steps]);  f = exp(c(m) - c(m'))
            for steps { part[step] = exp(score[step] - c(m')) }
            l' = l * f + sum part[steps]
            for columns { total[column] = total[column] * f + sum part[steps] * b[steps, column] }
          }
          for columns { ... total[column] ... l ... } }
    """
    return _Writer(chain, rescaling, block, power, partial, scale).nest()


@dataclass(eq=False)
class _Running:
    """A number that blocks hand on.

    Attributes:
        link: what it is of.
        init: before the first block.
        before, after: a block.
        result: after all of them.
    """

    link: Link
    init: Value
    before: Value
    after: Value | None = None
    result: Value | None = None


class _Writer:
    def __init__(
        self,
        chain: ProductChain,
        rescaling: Rescaling,
        block: int,
        power: str,
        partial: PartialSums | None,
        scale: ScoreScale | None = None,
    ) -> None:
        self.chain, self.rescaling, self.block, self.partial = chain, rescaling, block, partial
        self.number = Var(-(-chain.step.extent // block), "t")
        self.code = LinkCode(chain, rescaling, power, scale, first=Expr.of(self.number) * block)
        for buffer in sorted(chain.passed, key=lambda b: b.number):
            size = buffer.bytes_per_element
            self.local[buffer] = Buffer((block,), buffer.element, "local", bytes_per_element=size)
        element = chain.product.reduction.loops[0].results[0].type
        (column,) = chain.product.columns
        self.total = Buffer((column.extent,), element, "local")

    @property
    def local(self) -> dict[Buffer, Buffer]:
        """Buffers of a block of steps."""
        return self.code.local

    def nest(self) -> list[Node]:
        """See :func:`running_chain`."""
        chain, out = self.chain, Ops()
        running = [
            _Running(link, self.code.initial(link, out), Value(link.reduction.results[0].type))
            for link in chain.links
            if link.reduction is not None
        ]
        blocks = self._blocks(running)
        columns = chain.product.columns[0].extent
        column, before = Var(columns), Ops()
        first = Store(self.code.zero(before), self.total, (Expr.of(column),))
        start = For(column, [*before.out, first])
        nodes: list[Node] = [Alloca(self.total), start, *out.out, blocks, *self._finish(running)]
        around = chain.rows if self.partial is None else [self.partial.part, *chain.rows]
        whole = nested(around, nodes)
        whole = clone(whole, {}, {})
        remove_dead(whole)
        return whole

    def _blocks(self, running: list[_Running]) -> For:
        """The loop over blocks of steps."""
        out = Ops()
        out.out += [Alloca(buffer) for buffer in self.local.values()]
        of = {each.link: each for each in running}
        factor: Value | None = None
        for link in self.chain.links:
            if link.of_elements:
                out.out.append(self._elements(link))
            elif link is self.rescaling.maximum:
                own = of[link]
                own.after = self._reduce(link, own.before, out)
                factor = self.code.factor(link, own.before, own.after, out)
            elif link in of:
                own, start = of[link], of[link].before
                if factor is not None and link in self.rescaling.linear:
                    start = out.op("arith.mulf", [start, factor])
                own.after = self._reduce(link, start, out)
            elif not self.rescaling.is_late(link):
                out.out += self.code.row(link)
        out.out.append(self._product(factor))
        for each in running:
            assert each.after is not None
            each.result = Value(each.init.type)
        blocks = For(
            self.number,
            out.out,
            [r.init for r in running],
            [r.before for r in running],
            [r.result for r in running if r.result is not None],
            [r.after for r in running if r.after is not None],
        )
        if self.partial is not None:
            blocks.lower, blocks.upper = self.partial.bounds(self.number)
        self._mask(blocks, out)
        return blocks

    def _mask(self, blocks: For, out: Ops) -> None:
        """Leave out blocks whose elements are all masked, and mask those of others."""
        around = self.chain.rows, self.block
        elements = [n for n in out.out if isinstance(n, For) and not n.inits]
        if not blocks.inits:
            # As the program has them, of exponentials that masks make zero.
            plain = _Writer(self.chain, self.rescaling, self.block, "", None)
            before = [plain._elements(link) for link in self.chain.links]
            (operand,) = self._passed(self.chain.product.reduction.loops[0].body)
            bound_absent_blocks(blocks, before, plain.local[operand], *around)
            return
        scores = self._scores()
        if scores is None:
            return
        for statement in elements:
            bound_blocks(blocks, statement, scores, *around)
        # A block alone has constant bounds, from which a border would not be told.
        for statement in elements if most_runs(blocks) > 1 else ():
            masks = masks_at_borders(statement, scores, *around, self.code.first)
            at = out.out.index(statement) + 1
            out.out[at:at] = masks

    def _scores(self) -> Buffer | None:
        """The block's buffer of elements that exponentials are of, less the largest of them."""
        maximum = self.rescaling.maximum
        if maximum is None or maximum.reduction is None:
            return None
        (found, *others) = self._passed(maximum.reduction.body)
        for link in self.chain.links:
            if any(n in self.rescaling.exponentials for n in walk(link.body)):
                others += [b for b in self._passed(link.body) if b is not found]
        return None if others else self.local[found]

    def _passed(self, nodes: list[Node]) -> list[Buffer]:
        """Buffers of elements that code loads."""
        return [n.buffer for n in nodes if isinstance(n, Load) and n.buffer in self.chain.passed]

    def _steps(self) -> For:
        """A loop over the steps of a block."""
        var = Var(self.chain.step.extent, "j")
        if self.number.extent == 1:
            return For(var, [])
        first = self.code.first
        return For(var, [], lower=(first,), upper=(first + self.block,))

    def _elements(self, link: Link) -> For:
        loop = self._steps()
        loop.body = self.code.copied(link.body, link.variables, {}, loop.var)
        return loop

    def _reduce(self, link: Link, start: Value, out: Ops) -> Value:
        """A reduction over the steps of a block, from a value on."""
        assert link.reduction is not None
        loop, own = self._steps(), link.reduction
        values = {own.arguments[0]: Value(start.type)}
        loop.arguments = list(values.values())
        before = link.body[: link.body.index(own)]
        out.out += self.code.copied(before, link.variables, values)
        loop.inits, loop.results = [start], [Value(start.type)]
        loop.body = self.code.copied(own.body, link.variables, values, loop.var)
        loop.yields = [values[v] for v in own.yields]
        out.out.append(loop)
        return loop.results[0]

    def _product(self, factor: Value | None) -> For:
        """The last product's sums of a block."""
        (column,) = self.chain.product.columns
        own = self.chain.product.reduction.loops[0]
        var, out = Var(column.extent, "d"), Ops()
        before = Value(self.total.element)
        at = (Expr.of(var),)
        out.out.append(Load(before, self.total, at))
        start = before if factor is None else out.op("arith.mulf", [before, factor])
        loop = self._steps()
        values = {own.arguments[0]: Value(start.type)}
        loop.inits, loop.results = [start], [Value(start.type)]
        loop.arguments = list(values.values())
        loop.body = self.code.copied(own.body, {column: Expr.of(var)}, values, loop.var)
        loop.yields = [values[v] for v in own.yields]
        out.out += [loop, Store(loop.results[0], self.total, at)]
        return For(var, out.out)

    def _finish(self, running: list[_Running]) -> list[Node]:
        """The epilogue of a row."""
        chain, out = self.chain, Ops()
        results = {each.link: each.result for each in running if each.result is not None}
        (column,) = chain.product.columns
        var, inner = Var(column.extent, "d"), Ops()
        total = Value(self.total.element)
        inner.out.append(Load(total, self.total, (Expr.of(var),)))
        if self.partial is not None:
            out.out += self.partial.stores(results)
            inner.out.append(self.partial.store_total(total, var))
        else:
            correction = self.code.finish(results, out)
            kept = sorted(chain.kept, key=lambda b: b.number)
            out.out += [Store(self.code.held[b], b, chain.places[b]) for b in kept]
            self.code.finish_sum(total, correction, var, inner)
        return [*out.out, For(var, inner.out)]
