"""narrow-indices: positions that a reduction looks for are kept in 32 bits where they fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.analysis.dataflow import makers_of
from polyblocks.affine.analysis.reductions import ReductionNest, identity
from polyblocks.affine.element import I64, dtype_of
from polyblocks.affine.model import For, Index, Node, Op, Sequence, Value, remove_dead
from polyblocks.affine.ops import like
from polyblocks.affine.subnests import change_subnests
from polyblocks.passes.base import NestPass

#: Reductions whose result is one of the values that they are given.
PICKING = ("arith.maxsi", "arith.minsi")
LIMIT = 1 << 31


@dataclass(frozen=True)
class NarrowIndicesPass(NestPass):
    """Carry 64-bit maxima and minima of loop indices and constants as 32-bit ones.

    Frameworks count in 64 bits, but where a row has fewer than 2³¹ elements twice as many
    positions fit a vector, as many as there are floats to compare.

    Before::

        %r = affine.for %k = 0 to 4096 iter_args(%s = %z) -> i64 {
          %i = arith.index_cast %k : index to i64
          %v = arith.select %found, %i, %none : i64
          %t = arith.minsi %v, %s : i64
          affine.yield %t : i64 }

    After::

        %q = affine.for %k = 0 to 4096 iter_args(%s = %largest) -> i32 {
          %i = arith.index_cast %k : index to i32
          %v = arith.select %found, %i, %none32 : i32
          %t = arith.minsi %v, %s : i32
          affine.yield %t : i32 }
        %w = arith.extsi %q : i32 to i64
        %r = arith.minsi %w, %z : i64
    """

    name: ClassVar[str] = "narrow-indices"

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Narrow in every nest and sub-nest."""
        for nest in sequence.nests():
            if change_subnests(nest, _change):
                remove_dead(nest.body)
                context.decide(self.name, nest.name, "narrowed")


def _change(nodes: list[Node], around: list[For]) -> list[Node] | None:
    del around
    shape = ReductionNest.of_nodes(nodes)
    combiners = None if shape is None else shape.combiners(any_order=False)
    if shape is None or combiners is None:
        return None
    # Without iterations the result would be the identity of 32 bits.
    if any(loop.bounded or loop.var.extent < 1 for loop in shape.reductions):
        return None
    makers = makers_of([*shape.before, *shape.inner])
    chosen: dict[int, _Narrow] = {}
    for i, op in enumerate(combiners):
        if op.name in PICKING and dtype_of(op.results[0].type) == I64:
            (term,) = [v for v in op.operands if v is not shape.reductions[-1].arguments[i]]
            narrow = _Narrow(makers)
            if narrow.fits(term):
                chosen[i] = narrow
    if not chosen:
        return None
    body = _narrowed(shape, combiners, chosen)
    if not shape.parallel:
        return body
    shape.parallel[-1].body = body
    return nodes


class _Narrow:
    """Copies a 64-bit computation in 32 bits."""

    def __init__(self, makers: dict[Value, Node]) -> None:
        self.makers = makers
        self.made: dict[Value, Value] = {}
        self.nodes: list[Node] = []

    def fits(self, value: Value) -> bool:
        """Whether ``value`` is chosen among indices and constants that fit."""
        from polyblocks.mlir import ir

        maker = self.makers.get(value)
        if not isinstance(maker, Op):
            return False
        if maker.name == "arith.select":
            return all(self.fits(v) for v in maker.operands[1:])
        if maker.name == "arith.constant":
            return bool(-LIMIT < ir.IntegerAttr(maker.attributes["value"]).value < LIMIT - 1)
        if maker.name == "arith.index_cast":
            index = self.makers.get(maker.operands[0])
            if not isinstance(index, Index):
                return False
            low, high = index.expr.range()
            return low > -LIMIT and high < LIMIT - 1
        return False

    def copy(self, value: Value) -> Value:
        """The 32-bit value; what makes it goes to ``nodes``."""
        from polyblocks.mlir import ir

        if value in self.made:
            return self.made[value]
        maker = self.makers[value]
        assert isinstance(maker, Op)
        i32 = ir.IntegerType.get_signless(32)
        attributes = dict(maker.attributes)
        operands = list(maker.operands)
        if maker.name == "arith.select":
            operands[1:] = [self.copy(v) for v in operands[1:]]
        elif maker.name == "arith.constant":
            number = ir.IntegerAttr(maker.attributes["value"]).value
            attributes["value"] = ir.IntegerAttr.get(i32, number)
        result = Value(i32)
        self.nodes.append(Op(maker.name, operands, attributes, [result], maker.location))
        self.made[value] = result
        return result


def _narrowed(shape: ReductionNest, combiners: list[Op], chosen: dict[int, _Narrow]) -> list[Node]:
    """The nest's body with the chosen carried values in 32 bits, in place of the old loops."""
    from polyblocks.mlir import ir

    i32 = ir.IntegerType.get_signless(32)
    first, last = shape.reductions[0], shape.reductions[-1]
    before: list[Node] = []
    after: list[Node] = []
    for i, narrow in chosen.items():
        op = combiners[i]
        (term,) = [v for v in op.operands if v is not last.arguments[i]]
        start, total, wide = Value(i32), Value(i32), Value(first.results[i].type)
        value = {"value": identity(op.name, i32)}
        before.append(Op("arith.constant", [], value, [start]))
        old_init, old_result = first.inits[i], first.results[i]
        shape.carry_anew(i, start, i32)
        last.yields[i] = total
        copied = narrow.copy(term)
        position = last.body.index(op)
        joined = like(op, [copied, last.arguments[i]], total)
        last.body[position : position + 1] = [*narrow.nodes, joined]
        after.append(Op("arith.extsi", [first.results[i]], {}, [wide]))
        after.append(like(op, [wide, old_init], old_result))
    return [*shape.before, *before, first, *after, *shape.after]
