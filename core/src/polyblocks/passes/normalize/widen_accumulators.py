"""widen-accumulators: sums and products of 16-bit floating-point numbers are kept in 32 bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.analysis.dataflow import ops_of
from polyblocks.affine.analysis.reductions import ReductionNest
from polyblocks.affine.element import BF16, F16, dtype_of
from polyblocks.affine.model import For, Node, Op, Sequence, Value, walk
from polyblocks.affine.ops import Ops, like
from polyblocks.attributes import FREE_ROUNDING_ATTRIBUTE
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass

#: Reductions in which a rounding at every step adds up.
WIDENED = ("arith.addf", "arith.mulf")
NARROW = (F16, BF16)


@dataclass(frozen=True)
class WidenAccumulatorsPass(NestPass):
    """Carry what is accumulated from 16-bit numbers as f32 and round once, at the end.

    That is what frameworks do, and what matrix units do. A product that only the sum uses is not
    rounded either.

    Before::

        %r = affine.for %k = 0 to 64 iter_args(%s = %z) -> bf16 {
          %m = arith.mulf %a, %b : bf16
          %t = arith.addf %s, %m : bf16
          affine.yield %t : bf16 }

    After::

        %w = arith.extf %z : bf16 to f32
        %r32 = affine.for %k = 0 to 64 iter_args(%s = %w) -> f32 {
          %a32 = arith.extf %a {polyblocks.free_rounding} : bf16 to f32 ...
          %m = arith.mulf %a32, %b32 : f32
          %t = arith.addf %s, %m : f32
          affine.yield %t : f32 }
        %r = arith.truncf %r32 : f32 to bf16
    """

    name: ClassVar[str] = "widen-accumulators"
    needs: ClassVar[frozenset[str]] = frozenset({facts.NESTS, facts.ROLLED_REDUCTIONS})

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Widen in every nest that has such a reduction."""
        for nest in sequence.nests():
            shape = ReductionNest.of(nest)
            combiners = shape.combiners(any_order=False) if shape is not None else None
            if shape is None or combiners is None:
                continue
            chosen = [
                i
                for i, op in enumerate(combiners)
                if op.name in WIDENED and dtype_of(op.results[0].type) in NARROW
            ]
            if not chosen:
                continue
            container = shape.parallel[-1].body if shape.parallel else nest.body
            container[:] = _widen(shape, combiners, chosen)
            nest.replace()
            context.decide(self.name, nest.name, "widened", accumulators=len(chosen))


def _widen(shape: ReductionNest, combiners: list[Op], chosen: list[int]) -> list[Node]:
    """The nodes inside the parallel loops, with the chosen carried values as f32."""
    from polyblocks.mlir import ir

    f32 = ir.F32Type.get()
    first, last = shape.reductions[0], shape.reductions[-1]
    widened: list[Node] = []
    narrowed: list[Node] = []
    users: dict[Value, int] = {}
    for node in walk(last.body):
        for operand in node.uses:
            users[operand] = users.get(operand, 0) + 1
    for i in chosen:
        init = Value(f32)
        widened.append(Op("arith.extf", [first.inits[i]], {}, [init]))
        old_argument, old_result = last.arguments[i], first.results[i]
        shape.carry_anew(i, init, f32)
        last.yields[i] = _accumulate(last, combiners[i], old_argument, i, users)
        narrowed.append(Op("arith.truncf", [first.results[i]], {}, [old_result]))
    return [*shape.before, *widened, first, *narrowed, *shape.after]


def _accumulate(loop: For, combiner: Op, argument: Value, i: int, users: dict[Value, int]) -> Value:
    """Replace the combiner by one on f32; returns its result."""
    from polyblocks.mlir import ir

    # Terms that are computed with right away need not be rounded.
    free = {FREE_ROUNDING_ATTRIBUTE: ir.UnitAttr.get()}
    f32 = loop.arguments[i].type
    position = loop.body.index(combiner)
    (term,) = [v for v in combiner.operands if v is not argument]
    makers = ops_of(loop.body)
    maker = makers.get(term)
    new: list[Node] = []

    def wide(value: Value) -> Value:
        return Ops(new).op("arith.extf", [value], f32, free)

    if maker is not None and maker.name == "arith.mulf" and users.get(term) == 1:
        loop.body.remove(maker)
        position -= 1
        term = Value(f32)
        new.append(like(maker, [wide(v) for v in maker.operands], term))
    else:
        term = wide(term)
    total = Value(f32)
    new.append(like(combiner, [loop.arguments[i], term], total))
    loop.body[position : position + 1] = new
    return total
