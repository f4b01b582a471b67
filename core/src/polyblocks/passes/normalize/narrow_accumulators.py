"""narrow-accumulators: sums and products of integers are kept in the 32 bits that are used."""

from __future__ import annotations

from collections.abc import Sequence as Nodes
from dataclasses import dataclass
from typing import Any, ClassVar, TypeGuard

from polyblocks.affine.analysis.dataflow import ops_of
from polyblocks.affine.analysis.facts import facts_of
from polyblocks.affine.analysis.reductions import INTEGER_EXTENSIONS, ReductionNest
from polyblocks.affine.element import I64, dtype_of
from polyblocks.affine.model import (
    For,
    Nest,
    Node,
    Op,
    Sequence,
    Value,
    remove_dead,
    replace_values,
    walk,
)
from polyblocks.affine.ops import Ops
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass
from polyblocks.passes.normalize.precision_modes import check_factors

#: Operations whose low result bits depend on the low operand bits only.
NARROWED = ("arith.addi", "arith.muli")
#: Modes with sums in 32 bits.
INTEGER_MODES = ("int32", "mixed_int8_int32")


@dataclass(frozen=True)
class NarrowAccumulatorsPass(NestPass):
    """Carry what is accumulated in i64 as i32, where no more than 32 bits of the result are used.

    Frameworks add up integers in 64 bits and take the lower half. Sums and products are the same
    in it, and twice as many fit a vector. The modes of `mm_conv_precision_mode` that keep sums in
    32 bits do so for all contractions.

    Before::

        %r = affine.for %k = 0 to 64 iter_args(%s = %z) -> i64 {
          %a64 = arith.extsi %a : i32 to i64 ...
          %m = arith.muli %a64, %b64 : i64
          %t = arith.addi %s, %m : i64
          affine.yield %t : i64 }
        %n = arith.trunci %r : i64 to i32

    After::

        %z32 = arith.trunci %z : i64 to i32
        %n = affine.for %k = 0 to 64 iter_args(%s = %z32) -> i32 {
          %m = arith.muli %a, %b : i32
          %t = arith.addi %s, %m : i32
          affine.yield %t : i32 }
    """

    name: ClassVar[str] = "narrow-accumulators"
    needs: ClassVar[frozenset[str]] = frozenset({facts.NESTS, facts.REDUCTIONS, facts.UNTILED})

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Narrow in every nest that has such a reduction.

        Raises:
            OptionError: the mode is for bytes, and the program multiplies wider numbers.
        """
        mode = context.options.mm_conv_precision_mode
        for nest in sequence.nests():
            forced = mode in INTEGER_MODES and _is_product(nest, mode)
            shape = ReductionNest.of(nest)
            combiners = shape.combiners(any_order=False) if shape is not None else None
            if shape is None or combiners is None:
                continue
            chosen = [
                i
                for i, op in enumerate(combiners)
                if op.name in NARROWED
                and _low_bits_used(shape.reductions[0].results[i], nest.body, forced)
            ]
            if not chosen:
                continue
            container = shape.parallel[-1].body if shape.parallel else nest.body
            container[:] = _narrow(shape, combiners, chosen)
            remove_dead(nest.body)
            nest.replace()
            context.decide(self.name, nest.name, "narrowed", accumulators=len(chosen))


def _is_product(nest: Nest, mode: str) -> bool:
    """Whether a nest is a contraction that a mode for integers is for."""
    contraction = facts_of(nest).contraction
    if contraction is None or not contraction.reduction.loops:
        return False
    # Their extensions may stand beside them by now.
    if mode == "mixed_int8_int32":
        check_factors(nest, contraction, mode, "int8 or uint8 numbers", 8)
    return True


def _low_bits_used(value: Value, nodes: list[Node], forced: bool) -> bool:
    """Whether a number of 64 bits is used in parts of at most 32 only, or may be ``forced`` to."""
    if dtype_of(value.type) != I64:
        return False
    if forced:
        return True
    users = [n for n in walk(nodes) if value in n.uses]
    return bool(users) and all(
        _truncates(n, value) and n.results[0].type.width <= 32 for n in users
    )


def _narrow(shape: ReductionNest, combiners: list[Op], chosen: list[int]) -> list[Node]:
    """The nodes inside the parallel loops, with the chosen carried values as i32."""
    first, last = shape.reductions[0], shape.reductions[-1]
    starts: list[Node] = []
    after = list(shape.after)
    for i in chosen:
        code = _Narrow([*shape.before, *last.body])
        init = code.low(first.inits[i], starts)
        old_argument, old_result = last.arguments[i], first.results[i]
        shape.carry_anew(i, init, code.type)
        last.yields[i] = _accumulate(last, combiners[i], old_argument, i, code)
        new = first.results[i]
        same = [n for n in after if _truncates(n, old_result) and n.results[0].type == code.type]
        after = [n for n in after if n not in same]
        replace_values(after, {n.results[0]: new for n in same})
        whole = [n for n in after if old_result in n.uses and not _truncates(n, old_result)]
        if whole:
            wide = Value(old_result.type)
            replace_values(whole, {old_result: wide})
            after.insert(0, Op("arith.extsi", [new], {}, [wide]))
        replace_values(after, {old_result: new})
    return [*shape.before, *starts, first, *after]


def _truncates(node: Node, value: Value) -> TypeGuard[Op]:
    return isinstance(node, Op) and node.name == "arith.trunci" and node.operands == [value]


def _accumulate(loop: For, combiner: Op, argument: Value, i: int, code: _Narrow) -> Value:
    """Replace the combiner by one on i32; returns its result."""
    position = loop.body.index(combiner)
    (term,) = [v for v in combiner.operands if v is not argument]
    new: list[Node] = []
    low = code.low(term, new)
    total = Value(code.type)
    new.append(Op(combiner.name, [loop.arguments[i], low], {}, [total], combiner.location))
    loop.body[position : position + 1] = new
    return total


class _Narrow:
    """The lower halves of values.

    Attributes:
        type: of these.
    """

    def __init__(self, nodes: Nodes[Node]) -> None:
        from polyblocks.mlir import ir

        self.type = ir.IntegerType.get_signless(32)
        self._makers = ops_of(nodes)

    def low(self, value: Value, out: list[Node]) -> Value:
        """The lower half of a value of 64 bits, made as narrow as it can be."""
        maker = self._makers.get(value)
        if maker is not None and maker.name in INTEGER_EXTENSIONS:
            (narrow,) = maker.operands
            if narrow.type == self.type:
                return narrow
            if narrow.type.width < 32:
                return Ops(out).op(maker.name, [narrow], self.type)
        if maker is not None and maker.name in NARROWED:
            return Ops(out).op(maker.name, [self.low(v, out) for v in maker.operands])
        return Ops(out).op("arith.trunci", [value], self.type)
