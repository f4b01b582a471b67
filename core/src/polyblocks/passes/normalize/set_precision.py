"""set-precision: contractions in the types of `mm_conv_precision_mode`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from polyblocks.affine.analysis.contractions import Contraction
from polyblocks.affine.analysis.facts import facts_of
from polyblocks.affine.element import BF16, F16, F32, dtype_of, printed
from polyblocks.affine.model import Nest, Node, Op, Sequence, Value, replace_values
from polyblocks.affine.ops import Floats, Ops, integer
from polyblocks.options import FLOAT_MODES
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass
from polyblocks.passes.normalize.precision_modes import check_factors, container_of, products
from polyblocks.target import TargetDescription

#: Factors of these types are rounded; what is kept in float64 stays so.
_ROUNDED = (F16, BF16, F32)


@dataclass(frozen=True)
class SetPrecisionPass(NestPass):
    """Round the operands of contractions to the type that the option names.

    Products and sums stay in float32, which holds products of two such numbers exactly; with
    ``fp16`` the sums are rounded to float16 at the end. Where a chip multiplies these types
    itself, ``tile-contractions`` or ``choose-kernels`` finds that; a chip with units for TF32
    rounds to that itself, ties away from zero, others to even. Modes for integers are refused here
    where a program multiplies others; what they do is up to ``narrow-accumulators``.

    Before, with ``mixed_bf16_fp32``::

        %x = affine.load %a[%i, %k] ...
        %p = arith.mulf %x, %y : f32

    After::

        %x = affine.load %a[%i, %k] ...
        %xr = arith.truncf %x : f32 to bf16
        %xe = arith.extf %xr : bf16 to f32 ...
        %p = arith.mulf %xe, %ye : f32
    """

    name: ClassVar[str] = "set-precision"
    needs: ClassVar[frozenset[str]] = frozenset(
        {facts.NESTS, facts.ROLLED_REDUCTIONS, facts.UNFUSED}
    )

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Round in every nest that is a contraction.

        Raises:
            OptionError: the mode is for integers, and the program multiplies others.
        """
        mode = context.options.mm_conv_precision_mode
        if mode in (None, "fp32"):
            return
        for nest in sequence.nests():
            contraction = facts_of(nest).contraction
            if contraction is None or not contraction.reduction.loops:
                continue
            if mode in FLOAT_MODES:
                self._round(nest, contraction, mode, context)
            else:
                check_factors(nest, contraction, mode, "integers", 64)

    def _round(self, nest: Nest, contraction: Contraction, mode: str, context: Any) -> None:
        """Round the factors of all products of a step."""
        body = contraction.reduction.loops[-1].body
        kind = FLOAT_MODES[mode]
        rounding = _to(kind) if kind else _to_tf32(context.target)
        found = 0
        for product in products(contraction):
            if product.name != "arith.mulf" or dtype_of(product.results[0].type) not in _ROUNDED:
                continue
            new: list[Node] = []
            product.operands = [
                v if _is_narrow(v, kind, body) else rounding(v, new) for v in product.operands
            ]
            at = body.index(product)
            body[at:at] = new
            found += 1
        if found and mode == "fp16":
            _round_results(nest, contraction)
        if found:
            nest.replace()
            context.decide(self.name, nest.name, "rounded", mode=mode, products=found)


def _is_narrow(value: Value, kind: str, body: list[Node]) -> bool:
    """Whether a value is a number of the type already."""
    maker = next((n for n in body if isinstance(n, Op) and value in n.results), None)
    return (
        maker is not None
        and maker.name == "arith.extf"
        and (printed(maker.operands[0].type) == (kind or "f16"))
    )


def _to(kind: str) -> Callable[[Value, list[Node]], Value]:
    """Rounds to a type that MLIR has."""
    from polyblocks.mlir import ir

    narrow = ir.Type.parse(kind)

    def rounded(value: Value, out: list[Node]) -> Value:
        ops = Ops(out)
        return ops.op("arith.extf", [ops.op("arith.truncf", [value], narrow)], value.type)

    return rounded


def _to_tf32(target: TargetDescription) -> Callable[[Value, list[Node]], Value]:
    """Rounds to TF32 as the target's units have it."""
    for unit in target.matrix_units:
        if unit.rounding and unit.fragments is not None:
            return partial(_by_function, unit.rounding)
    return _tf32


def _by_function(function: str, value: Value, out: list[Node]) -> Value:
    """Rounds by a function that returns the bits."""
    ops = Ops(out)
    return ops.op("arith.bitcast", [ops.intrinsic(function, [value], integer(32))], value.type)


def _tf32(value: Value, out: list[Node]) -> Value:
    """Rounds a float32 to the 10 bits of TF32's fraction, to nearest even; NaN stays NaN."""
    ops, i32 = Ops(out), integer(32)

    def op(name: str, first: Value, second: int | Value) -> Value:
        other = ops.constant(second, i32) if isinstance(second, int) else second
        return ops.op(name, [first, other])

    bits = ops.op("arith.bitcast", [value], i32)
    odd = op("arith.andi", op("arith.shrui", bits, 13), 1)
    up = op("arith.addi", op("arith.addi", bits, 0xFFF), odd)
    cut = ops.op("arith.bitcast", [op("arith.andi", up, -0x2000)], value.type)
    return ops.select(ops.compare(Floats.UNORDERED, value, value), value, cut)


def _round_results(nest: Nest, contraction: Contraction) -> None:
    """Let what follows a reduction see its results rounded to float16."""
    first = contraction.reduction.loops[0]
    rounding = _to("f16")
    container = container_of(nest.body, first)
    after = container[container.index(first) + 1 :]
    new: list[Node] = []
    for result in first.results:
        users = [n for n in after if result in n.uses]
        if dtype_of(result.type) != F32 or all(_is_rounding(n) for n in users):
            continue
        rounded = rounding(result, new)
        replace_values(after, {result: rounded})
    at = container.index(first) + 1
    container[at:at] = new


def _is_rounding(node: Node) -> bool:
    """Whether a node rounds to float16."""
    if not isinstance(node, Op) or node.name != "arith.truncf":
        return False
    return dtype_of(node.results[0].type) == F16
