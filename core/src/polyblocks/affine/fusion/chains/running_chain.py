"""Chains of products as one nest: rows, and in each row blocks of steps with running numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import e, log2

from polyblocks.affine.element import F32, dtype_of
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.fusion.chains.chained_products import Link, ProductChain
from polyblocks.affine.fusion.chains.masked_blocks import bound_blocks, masks_at_borders
from polyblocks.affine.fusion.chains.row_kinds import Kind, Rescaling
from polyblocks.affine.model import (
    Alloca,
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
    walk,
)
from polyblocks.affine.ops import Floats, Ops


def running_chain(
    chain: ProductChain, rescaling: Rescaling, block: int, power: str = ""
) -> list[Node]:
    """The nest that computes a chain, a block of ``block`` steps after the other.

    With ``power``, LLVM's function of a power of two that is as exact as numbers of 16 bits need,
    exponentials that become such numbers are computed by it.

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
    return _Writer(chain, rescaling, block, power).nest()


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


@dataclass(eq=False)
class _Writer:
    chain: ProductChain
    rescaling: Rescaling
    block: int
    power: str = ""
    local: dict[Buffer, Buffer] = field(default_factory=dict)

    def __post_init__(self) -> None:
        chain, step = self.chain, self.chain.step
        self.number = Var(-(-step.extent // self.block), "t")
        for buffer in sorted(chain.passed, key=lambda b: b.number):
            size = buffer.bytes_per_element
            self.local[buffer] = Buffer(
                (self.block,), buffer.element, "local", bytes_per_element=size
            )
        #: The numbers of a row that are known so far.
        self.held: dict[Buffer, Value] = {}
        #: Added to the exponent of a power of two, in place of subtracting the shift.
        self.added: Value | None = None
        if self.rescaling.exponential is not None:
            exact = dtype_of(self.rescaling.exponential.results[0].type) != F32
            self.power = "" if exact else self.power
        loop = chain.product.reduction.loops[0]
        element = loop.results[0].type
        (column,) = chain.product.columns
        self.total = Buffer((column.extent,), element, "local")

    def nest(self) -> list[Node]:
        """See :func:`running_chain`."""
        chain = self.chain
        reduced = [link for link in chain.links if link.reduction is not None]
        out = Ops()
        running = [
            _Running(link, self._init(link, out), Value(link.reduction.results[0].type))
            for link in reduced
            if link.reduction is not None
        ]
        blocks = self._blocks(running)
        columns = chain.product.columns[0].extent
        column, zero = Var(columns), self._zero()
        start = For(column, [zero, Store(zero.results[0], self.total, (Expr.of(column),))])
        nodes: list[Node] = [Alloca(self.total), start, *out.out, blocks, *self._finish(running)]
        whole = nested(chain.rows, nodes)
        whole = clone(whole, {}, {})
        remove_dead(whole)
        return whole

    def _init(self, link: Link, out: Ops) -> Value:
        """The initial value of a reduction."""
        assert link.reduction is not None
        values: dict[Value, Value] = {}
        before = link.body[: link.body.index(link.reduction)]
        out.out += self._copied(before, link.variables, values)
        (init,) = link.reduction.inits
        return values.get(init, init)

    def _zero(self) -> Op:
        before = self.chain.product.before
        (init,) = self.chain.product.reduction.loops[0].inits
        (found,) = (n for n in before if isinstance(n, Op) and init in n.results)
        (copy,) = clone([found], {}, {})
        assert isinstance(copy, Op)
        return copy

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
                factor = self._shift(link, own, out)
            elif link in of:
                own, start = of[link], of[link].before
                if factor is not None and self._is_linear(link):
                    start = out.op("arith.mulf", [start, factor])
                own.after = self._reduce(link, start, out)
            elif not self.rescaling.is_late(link):
                out.out += self._row(link)
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
        scores = self._scores()
        if scores is not None:
            around = self.chain.rows, self.block
            first = Expr.of(self.number) * self.block
            for statement in list(out.out):
                if isinstance(statement, For) and not statement.inits:
                    bound_blocks(blocks, statement, scores, *around)
                    if self.number.extent > 1:
                        masks = masks_at_borders(statement, scores, *around, first)
                        at = out.out.index(statement) + 1
                        out.out[at:at] = masks
        return blocks

    def _scores(self) -> Buffer | None:
        """The block's buffer of elements that exponentials are of, less the largest of them."""
        maximum = self.rescaling.maximum
        if maximum is None or maximum.reduction is None:
            return None
        (found, *others) = self._passed(maximum.reduction.body)
        for link in self.chain.links:
            if any(n is self.rescaling.exponential for n in link.body):
                others += [b for b in self._passed(link.body) if b is not found]
        return None if others else self.local[found]

    def _passed(self, nodes: list[Node]) -> list[Buffer]:
        """Buffers of elements that code loads."""
        return [n.buffer for n in nodes if isinstance(n, Load) and n.buffer in self.chain.passed]

    def _is_linear(self, link: Link) -> bool:
        """Whether a sum is one of multiples of exponentials."""
        assert link.reduction is not None
        loads = (n for n in link.reduction.body if isinstance(n, Load))
        return any(self.rescaling.buffers.get(n.buffer) is Kind.LINEAR for n in loads)

    def _steps(self) -> For:
        """A loop over the steps of a block."""
        var = Var(self.chain.step.extent, "j")
        first = Expr.of(self.number) * self.block
        if self.number.extent == 1:
            return For(var, [])
        return For(var, [], lower=(first,), upper=(first + self.block,))

    def _elements(self, link: Link) -> For:
        loop = self._steps()
        loop.body = self._copied(link.body, link.variables, {}, loop.var)
        return loop

    def _row(self, link: Link, values: dict[Value, Value] | None = None) -> list[Node]:
        """The code of a row without its reduction."""
        known = {} if values is None else values
        nodes = [n for n in link.body if n is not link.reduction]
        return self._copied(nodes, link.variables, known)

    def _reduce(self, link: Link, start: Value, out: Ops) -> Value:
        """A reduction over the steps of a block, from a value on."""
        assert link.reduction is not None
        loop, own = self._steps(), link.reduction
        values = {own.arguments[0]: Value(start.type)}
        loop.arguments = list(values.values())
        before = link.body[: link.body.index(own)]
        out.out += self._copied(before, link.variables, values)
        loop.inits, loop.results = [start], [Value(start.type)]
        loop.body = self._copied(own.body, link.variables, values, loop.var)
        loop.yields = [values[v] for v in own.yields]
        out.out.append(loop)
        return loop.results[0]

    def _shift(self, link: Link, own: _Running, out: Ops) -> Value:
        """The factor of sums so far. From here on the shift is the new one."""
        assert own.after is not None
        old, new = (self._safe(link, value, out)[0] for value in (own.before, own.after))
        low = self._lowest(own.before, out)
        if self.power:
            factor = out.constant(-log2(e), new.type)
            before, self.added = (out.op("arith.mulf", [v, factor]) for v in (old, new))
            less = out.op("arith.subf", [self.added, before])
            grown = out.intrinsic(self.power, [less])
        else:
            grown = self._exponential(out.op("arith.subf", [old, new]), out)
        zero = out.constant(0.0, grown.type)
        none = out.compare(Floats.EQUAL, own.before, low)
        return out.select(none, zero, grown)

    def _lowest(self, like: Value, out: Ops) -> Value:
        return out.constant(float("-inf"), like.type)

    def _safe(self, link: Link, maximum: Value, out: Ops) -> tuple[Value, Value]:
        """The shift of a largest score, 0 while there is no score; and as the program has it."""
        assert link.reduction is not None
        values = {link.reduction.results[0]: maximum}
        out.out += self._row(link, values)
        buffer = next(n.buffer for n in link.body if isinstance(n, Store))
        shift = self.held[buffer]
        none = out.compare(Floats.EQUAL, maximum, self._lowest(maximum, out))
        safe = out.select(none, out.constant(0.0, shift.type), shift)
        self.held[buffer] = safe
        return safe, shift

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
        loop.body = self._copied(own.body, {column: Expr.of(var)}, values, loop.var)
        loop.yields = [values[v] for v in own.yields]
        out.out += [loop, Store(loop.results[0], self.total, at)]
        return For(var, out.out)

    def _finish(self, running: list[_Running]) -> list[Node]:
        """The epilogue of a row."""
        chain, out = self.chain, Ops()
        self.held.clear()
        of = {each.link: each for each in running}
        correction: Value | None = None
        for link in chain.links:
            if link.of_elements:
                continue
            values: dict[Value, Value] = {}
            if link in of:
                own = of[link]
                assert link.reduction is not None
                assert own.result is not None
                result = own.result
                if link is self.rescaling.maximum:
                    correction = self._corrected(link, result, out)
                    continue
                if correction is not None and self._is_linear(link):
                    result = out.op("arith.mulf", [result, correction])
                values[link.reduction.results[0]] = result
            out.out += self._row(link, values)
        (column,) = chain.product.columns
        own_loop = chain.product.reduction.loops[0]
        var, inner = Var(column.extent, "d"), Ops()
        total = Value(self.total.element)
        inner.out.append(Load(total, self.total, (Expr.of(var),)))
        if correction is not None:
            total = inner.op("arith.mulf", [total, correction])
        for division in self.rescaling.divisions:
            total = inner.like(division, [total, self._divisor(division)])
        values = {own_loop.results[0]: total}
        nodes = [*chain.product.before, *chain.product.after]
        inner.out += self._copied(nodes, {column: Expr.of(var)}, values)
        return [*out.out, For(var, inner.out)]

    def _corrected(self, link: Link, maximum: Value, out: Ops) -> Value:
        """The factor of sums of rows without any score, as the program has them; else it is 1."""
        buffer = next(n.buffer for n in link.body if isinstance(n, Store))
        safe, shift = self._safe(link, maximum, out)
        self.held[buffer] = shift
        return self._exponential(out.op("arith.subf", [safe, shift]), out)

    def _exponential(self, of: Value, out: Ops) -> Value:
        exponential = self.rescaling.exponential
        assert exponential is not None
        return out.like(exponential, [of])

    def _divisor(self, division: Op) -> Value:
        """The number of a row by which elements are divided."""
        for link in self.chain.links:
            for node in walk(link.body):
                if isinstance(node, Load) and node.result is division.operands[1]:
                    return self.held[node.buffer]
        raise AssertionError("a division by a sum that is not loaded")

    def _copied(
        self,
        nodes: list[Node],
        variables: dict[Var, Expr],
        values: dict[Value, Value],
        step: Var | None = None,
    ) -> list[Node]:
        """Nodes of a link, with what is passed in buffers of a block, and what is held as values.

        Args:
            nodes: of the link.
            variables: what its own ones are.
            values: known ones; the copies are added.
            step: of the block's loop.
        """
        own = {} if step is None else {self.chain.step: Expr.of(step)}
        known = {var: expr.substitute(own) for var, expr in variables.items()} | own
        divisions = set(self.rescaling.divisions)
        kept: list[Node] = []
        for node in nodes:
            if isinstance(node, Op) and node in divisions:
                values[node.results[0]] = values.get(node.operands[0], node.operands[0])
                continue
            if isinstance(node, Load) and node.buffer in self.chain.held:
                if node.buffer in self.held:
                    values[node.result] = self.held[node.buffer]
                continue
            if isinstance(node, Store) and node.buffer in self.chain.held:
                self.held[node.buffer] = values.get(node.value, node.value)
                continue
            if isinstance(node, Op) and self.power and self._as_power(node, values, kept):
                continue
            (copy,) = clone([node], values, known)
            kept.append(copy)
            for inner in walk([copy]):
                if isinstance(inner, (Load, Store)) and inner.buffer in self.local:
                    assert step is not None
                    inner.buffer = self.local[inner.buffer]
                    inner.index = (Expr.of(step) - Expr.of(self.number) * self.block,)
        return kept

    def _as_power(self, op: Op, values: dict[Value, Value], out: list[Node]) -> bool:
        """Write the power of two for an exponential less a shift, or for the less; if it is one.

        The product with the logarithm is exact but for a rounding of the shift, which all numbers
        of a row have in common.
        """
        ops = Ops(out, op.location)
        if op is self.rescaling.exponential:
            (power,) = op.operands
            values[op.results[0]] = ops.intrinsic(self.power, [values[power]])
            return True
        if self.rescaling.of(op.results[0]) is not Kind.EXPONENT or op.name != "arith.subf":
            return False
        assert self.added is not None
        score = values.get(op.operands[0], op.operands[0])
        factor = ops.constant(log2(e), score.type)
        values[op.results[0]] = ops.op("math.fma", [score, factor, self.added])
        return True
