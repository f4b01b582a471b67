"""estimate-inverse-roots: quotients by square roots become products with corrected estimates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks import mlir

#: 1 / sqrt(x) of a float32, off by at most 2^-22.9 of it (PTX ISA, ``rsqrt.approx.f32``).
INTRINSIC = "llvm.nvvm.rsqrt.approx.f"
#: Of ``arith.cmpf``: ordered and less.
_LESS = 4


@dataclass(frozen=True)
class EstimateInverseRootsPass:
    """Divide float32 numbers by ``sqrt(s)`` without a division and a square root.

    Both of these have a fast and a slow way, between which threads branch: the loads of the next
    element then wait for the element before it. With the estimate ``r`` and ``e = 1 - s * r * r``,
    ``1 / sqrt(s)`` is ``r * (1 + e / 2)``, but for terms of ``e * e``. Where ``s`` is a zero or
    infinite, ``r`` is exact, and ``e``, which is NaN, is unused.

    Before::

        %r = math.sqrt %s : f32
        %q = arith.divf %x, %r fastmath<reassoc,contract> : f32

    After::

        %r = llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.f"(%s) : (f32) -> f32
        ...
        %q = arith.mulf %x, %i : f32
    """

    name: ClassVar[str] = "estimate-inverse-roots"

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite the module in place; returns whether there was such a quotient."""
        if context.options.mlir_disable_fast_math:
            return False
        ir = mlir.ir
        found: list[tuple[Any, Any, Any]] = []

        def visit(op: Any) -> Any:
            if op.name == "math.rsqrt" and _is_float(op):
                found.append((op, op.operands[0], None))
            elif op.name == "arith.divf" and _is_free(op) and _is_float(op):
                radicand = _radicand(op.operands[1])
                if radicand is not None:
                    found.append((op, radicand, op.operands[0]))
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit)
        with module.context:
            for op, radicand, dividend in found:
                with op.location, ir.InsertionPoint(op):
                    value = _inverse(radicand)
                    if dividend is not None and not _is_one(dividend):
                        value = _op("arith.mulf", dividend, value)
                op.results[0].replace_all_uses_with(value)
                op.erase()
        return bool(found)


def _is_free(op: Any) -> bool:
    """Whether the terms of an operation may be rearranged."""
    return "fastmath" in op.attributes and "reassoc" in str(op.attributes["fastmath"])


def _is_float(op: Any) -> bool:
    return isinstance(op.results[0].type, mlir.ir.F32Type)


def _maker(value: Any) -> Any:
    owner = value.owner
    return None if isinstance(owner, mlir.ir.Block) else owner


def _radicand(value: Any) -> Any:
    """The radicand of a root that nothing else reads; None for other values."""
    maker = _maker(value)
    if maker is None or maker.name != "math.sqrt" or len(list(value.uses)) > 1:
        return None
    return maker.operands[0]


def _is_one(value: Any) -> bool:
    return mlir.constant_number(value) == 1


def _inverse(s: Any) -> Any:
    """``1 / sqrt(s)``."""
    ir = mlir.ir
    r = ir.Operation.create(
        "llvm.call_intrinsic",
        results=[s.type],
        operands=[s],
        attributes={
            "intrin": ir.StringAttr.get(INTRINSIC),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0]),
            "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        },
    ).result
    one, half = _constant(s.type, 1.0), _constant(s.type, 0.5)
    # First the product with s: the square of r is not normal where s is very large.
    e = _op("math.fma", _op("arith.negf", _op("arith.mulf", s, r)), r, one)
    predicate = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _LESS)
    inside = ir.Operation.create(
        "arith.cmpf",
        results=[ir.IntegerType.get_signless(1)],
        operands=[e, one],
        attributes={"predicate": predicate},
    ).result
    corrected = _op("math.fma", _op("arith.mulf", r, half), e, r)
    return ir.Operation.create(
        "arith.select", results=[s.type], operands=[inside, corrected, r]
    ).result


def _op(name: str, *operands: Any) -> Any:
    return mlir.ir.Operation.create(name, results=[operands[0].type], operands=operands).result


def _constant(type_: Any, number: float) -> Any:
    ir = mlir.ir
    value = ir.FloatAttr.get(type_, number)
    return ir.Operation.create(
        "arith.constant", results=[type_], attributes={"value": value}
    ).result
