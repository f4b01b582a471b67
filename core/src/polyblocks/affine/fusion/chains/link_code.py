"""The code of a chain's links around the steps of a row, and of what its sums are divided by."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import e, log2

from polyblocks.affine.analysis.dataflow import makers_of, slice_of
from polyblocks.affine.element import F32, dtype_of
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.fusion.chains.chained_products import Link, ProductChain
from polyblocks.affine.fusion.chains.row_kinds import Rescaling
from polyblocks.affine.fusion.chains.score_scale import ScoreScale
from polyblocks.affine.fusion.rescaling import Kind
from polyblocks.affine.model import Buffer, Load, Node, Op, Store, Value, clone, walk
from polyblocks.affine.ops import Floats, Ops


@dataclass(eq=False)
class LinkCode:
    """Copies the code of links, with numbers of a row as values.

    Attributes:
        chain: the links.
        rescaling: how values depend on the maximum.
        power: LLVM's function of a power of two for exponentials; empty: these stay.
        scale: of scores, which exponents have in their place; only with ``power``.
        local: buffers of a block of steps in place of those of whole rows.
        first: the first step of the block.
        held: the numbers of a row that are known so far.
        added: what is added to the exponent of a power of two, in place of subtracting the shift.
    """

    chain: ProductChain
    rescaling: Rescaling
    power: str = ""
    scale: ScoreScale | None = None
    local: dict[Buffer, Buffer] = field(default_factory=dict)
    first: Expr = field(default_factory=lambda: Expr(0))
    held: dict[Buffer, Value] = field(default_factory=dict)
    added: Value | None = None

    def __post_init__(self) -> None:
        exponential = self.rescaling.exponential
        if exponential is not None and dtype_of(exponential.results[0].type) != F32:
            self.power = ""
        if not self.power:
            self.scale = None

    @property
    def _logarithm(self) -> float:
        """Of what a power of two is an exponential: of e, or of the scores' part of it."""
        return log2(e) * (1.0 if self.scale is None else self.scale.factor)

    def initial(self, link: Link, out: Ops) -> Value:
        """The initial value of a reduction."""
        assert link.reduction is not None
        values: dict[Value, Value] = {}
        before = link.body[: link.body.index(link.reduction)]
        out.out += self.copied(before, link.variables, values)
        (init,) = link.reduction.inits
        return values.get(init, init)

    def zero(self, out: Ops) -> Value:
        """The initial value of the last product's sums: a constant, maybe a wider one."""
        before = self.chain.product.before
        (init,) = self.chain.product.reduction.loops[0].inits
        needed = slice_of([init], makers_of(before))
        values: dict[Value, Value] = {}
        out.out += clone([n for n in before if n in needed], values, {})
        return values[init]

    def row(self, link: Link, values: dict[Value, Value] | None = None) -> list[Node]:
        """The code of a row without its reduction."""
        known = {} if values is None else values
        nodes = [n for n in link.body if n is not link.reduction]
        return self.copied(nodes, link.variables, known)

    def factor(self, link: Link, before: Value, after: Value, out: Ops) -> Value:
        """The factor from sums with one maximum to those with a larger one.

        From here on the shift is the new one.
        """
        old, new = (self._safe(link, value, out)[0] for value in (before, after))
        low = self._lowest(before, out)
        if self.power:
            factor = out.constant(-self._logarithm, new.type)
            less_old, self.added = (out.op("arith.mulf", [v, factor]) for v in (old, new))
            less = out.op("arith.subf", [self.added, less_old])
            grown = out.intrinsic(self.power, [less])
        else:
            grown = self._exponential(out.op("arith.subf", [old, new]), out)
        zero = out.constant(0.0, grown.type)
        none = out.compare(Floats.EQUAL, before, low)
        return out.select(none, zero, grown)

    def finish(self, results: dict[Link, Value], out: Ops) -> Value | None:
        """The code of a row behind the last step.

        Args:
            results: of reductions.
            out: gets the code.

        Returns:
            the factor of sums of multiples of exponentials; None: they stay as they are.
        """
        self.held.clear()
        correction: Value | None = None
        for link in self.chain.links:
            if link.of_elements:
                continue
            values: dict[Value, Value] = {}
            if link in results:
                assert link.reduction is not None
                result = results[link]
                if link is self.rescaling.maximum:
                    if self.scale is not None:
                        factor = out.constant(self.scale.factor, result.type)
                        result = out.op("arith.mulf", [result, factor])
                    correction = self._corrected(link, result, out)
                    continue
                if correction is not None and link in self.rescaling.linear:
                    result = out.op("arith.mulf", [result, correction])
                values[link.reduction.results[0]] = result
            out.out += self.row(link, values)
        return correction

    def finish_sum(self, total: Value, correction: Value | None, column: Var, out: Ops) -> None:
        """The code behind a sum of the last product.

        Args:
            total: the sum.
            correction: see :meth:`finish`.
            column: of the sum.
            out: gets the code.
        """
        chain = self.chain
        (own,) = chain.product.columns
        if correction is not None:
            total = out.op("arith.mulf", [total, correction])
        for division in self.rescaling.divisions:
            total = out.like(division, [total, self._divisor(division)])
        values = {chain.product.reduction.loops[0].results[0]: total}
        nodes = [*chain.product.before, *chain.product.after]
        out.out += self.copied(nodes, {own: Expr.of(column)}, values)

    def _lowest(self, like: Value, out: Ops) -> Value:
        return out.constant(float("-inf"), like.type)

    def _safe(self, link: Link, maximum: Value, out: Ops) -> tuple[Value, Value]:
        """The shift of a largest score, 0 while there is no score; and as the program has it."""
        assert link.reduction is not None
        values = {link.reduction.results[0]: maximum}
        out.out += self.row(link, values)
        buffer = next(n.buffer for n in link.body if isinstance(n, Store))
        shift = self.held[buffer]
        none = out.compare(Floats.EQUAL, maximum, self._lowest(maximum, out))
        safe = out.select(none, out.constant(0.0, shift.type), shift)
        self.held[buffer] = safe
        return safe, shift

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

    def copied(
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
            if self.scale is not None and node is self.scale.product:
                values[node.results[0]] = values.get(self.scale.operand, self.scale.operand)
                continue
            if isinstance(node, Load) and node.buffer in self.chain.held:
                if node.buffer in self.held:
                    values[node.result] = self.held[node.buffer]
                continue
            if isinstance(node, Store) and node.buffer in self.chain.held:
                self.held[node.buffer] = values.get(node.value, node.value)
                continue
            if isinstance(node, Op) and self.power and self._as_power(node, values, kept, step):
                continue
            (copy,) = clone([node], values, known)
            kept.append(copy)
            for inner in walk([copy]):
                if isinstance(inner, (Load, Store)) and inner.buffer in self.local:
                    assert step is not None
                    inner.buffer = self.local[inner.buffer]
                    inner.index = (Expr.of(step) - self.first,)
        return kept

    def _as_power(
        self, op: Op, values: dict[Value, Value], out: list[Node], step: Var | None
    ) -> bool:
        """Write the power of two for an exponential of an element, or for the less; if it is one.

        The product with the logarithm is exact but for a rounding of the shift, which all numbers
        of a row have in common. That of an element without a shift is as exact as numbers of 16
        bits need, which is what the last product multiplies.
        """
        ops = Ops(out, op.location)
        plain = step is not None and self.rescaling.of(op.results[0]) is Kind.PLAIN
        if plain and op.name == "math.exp" and dtype_of(op.results[0].type) == F32:
            exponent = values.get(op.operands[0], op.operands[0])
            factor = ops.constant(log2(e), exponent.type)
            power = ops.op("arith.mulf", [exponent, factor])
            values[op.results[0]] = ops.intrinsic(self.power, [power])
            return True
        if op in self.rescaling.exponentials:
            (power,) = op.operands
            values[op.results[0]] = ops.intrinsic(self.power, [values[power]])
            return True
        if self.rescaling.of(op.results[0]) is not Kind.EXPONENT or op.name != "arith.subf":
            return False
        assert self.added is not None
        score = values.get(op.operands[0], op.operands[0])
        factor = ops.constant(self._logarithm, score.type)
        values[op.results[0]] = ops.op("math.fma", [score, factor, self.added])
        return True
