"""estimate-roots: quotients by square roots become products with corrected estimates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks import mlir
from polyblocks_cpu.instructions.avx512 import intrinsic
from polyblocks_cpu.instructions.registers import by_registers

#: Lanes of the widest register, and the fewest that the instruction takes.
_WIDEST, _NARROWEST = 16, 4
#: Bits of a mask, at least.
_MASK_BITS = 8
#: Maps one register per operand to a register.
Instructions = Callable[..., Any]
#: Of ``arith.cmpf``.
_PREDICATES = {"ogt": 2, "olt": 4}


@dataclass(frozen=True)
class EstimateRootsPass:
    """Divide vectors by ``sqrt(s)`` and ``s * sqrt(s)`` without divisions and square roots.

    With the estimate ``r`` of ``1 / sqrt(s)`` and ``e = 1 - s * r * r``, which is at most 2^-13,
    ``1 / sqrt(s)`` is ``r * (1 + e / 2)``, and ``1 / (s * sqrt(s))`` is ``r^3 * (1 + 3 * e / 2)``,
    but for terms of ``e * e`` of less than half a unit in the last place. Of numbers drawn at
    random the quotients were off by at most 1.5 and 2.8 units, those of the instructions by 1.9 and
    2.8; as they are others, the operation must allow that its terms are rearranged. Where ``s`` is
    a zero or infinite, ``r`` is exact, and ``e``, which is NaN, is unused. Where only
    ``s * sqrt(s)`` is a zero or infinite, the quotient is that by ``s`` and by ``sqrt(s)``.

    The unit that divides takes 7 cycles for 16 quotients and 10 for 16 roots on Zen 4, 16 and 19 on
    Golden Cove (uops.info); all of this takes the others 6 to 8.

    Before::

        %r = math.sqrt %s : vector<16xf32>
        %q = arith.divf %x, %r fastmath<reassoc,contract> : vector<16xf32>

    After::

        %e = llvm.call_intrinsic "llvm.x86.avx512.rsqrt14.ps.512"(%s, ...) ...
    """

    name: ClassVar[str] = "estimate-roots"

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite the module in place; returns whether there was such a quotient."""
        # The instruction came with the same set.
        if not context.target.properties["ldexp"]:
            return False
        ir = mlir.ir
        exact = context.options.mlir_disable_fast_math
        found: list[tuple[Any, list[Any], Instructions]] = []

        def visit(op: Any) -> Any:
            if op.name == "math.rsqrt" and not exact and _fills_registers(op):
                found.append((op, [op.operands[0]], _inverse))
            elif op.name == "arith.divf" and _is_free(op) and _fills_registers(op):
                root = _root(op)
                if root is not None:
                    found.append((op, [op.operands[0], root[0]], root[1]))
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit)
        with module.context:
            for op, operands, make in found:
                with op.location, ir.InsertionPoint(op):
                    width = min(_WIDEST, op.results[0].type.shape[0])
                    value = by_registers(width, make, operands)
                op.results[0].replace_all_uses_with(value)
                op.erase()
        return bool(found)


def _is_free(op: Any) -> bool:
    """Whether the terms of an operation may be rearranged."""
    return "fastmath" in op.attributes and "reassoc" in str(op.attributes["fastmath"])


def _fills_registers(op: Any) -> bool:
    """Whether the result are numbers for one register of the instruction, or for several."""
    ir = mlir.ir
    type_ = op.results[0].type
    if not isinstance(type_, ir.VectorType) or not isinstance(type_.element_type, ir.F32Type):
        return False
    if type_.rank != 1 or type_.scalable:
        return False
    (lanes,) = type_.shape
    return lanes >= _NARROWEST and lanes & (lanes - 1) == 0


def _root(op: Any) -> tuple[Any, Instructions] | None:
    """The radicand of a root that is divided by, and the instructions of the quotient."""
    divisor = op.operands[1]
    if (radicand := _radicand(divisor)) is not None:
        return radicand, _quotient
    maker = _maker(divisor)
    if maker is None or maker.name != "arith.mulf" or not _is_read_once(divisor):
        return None
    for root, factor in (maker.operands, reversed(list(maker.operands))):
        radicand = _radicand(root)
        if radicand is not None and radicand == factor:
            return radicand, _cubed
    return None


def _radicand(value: Any) -> Any:
    """The radicand of a root with one reader; None for other values."""
    maker = _maker(value)
    if maker is None or maker.name != "math.sqrt" or not _is_read_once(value):
        return None
    return maker.operands[0]


def _maker(value: Any) -> Any:
    ir = mlir.ir
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner


def _is_read_once(value: Any) -> bool:
    return len(list(value.uses)) == 1


def _quotient(x: Any, s: Any) -> Any:
    """``x / sqrt(s)`` in one register."""
    return _multiply(x, _inverse(s))


def _inverse(s: Any) -> Any:
    """``1 / sqrt(s)`` in one register."""
    r = _estimate(s)
    # First the product with s: the square of r is not normal where s is very large.
    e = _bounded(_error(_multiply(s, r), r), "olt", 1.0)
    return _fma(_multiply(r, _splat(s.type, 0.5)), e, r)


def _cubed(x: Any, s: Any) -> Any:
    """``x / (s * sqrt(s))`` in one register.

    Where the square of r is not normal, s * sqrt(s) is a zero or infinite.
    """
    r = _estimate(s)
    square = _multiply(r, r)
    e = _bounded(_error(s, square), "ogt", -0.5)
    # The cube of the root of -0 is +0.
    size = mlir.ir.Operation.create("math.absf", results=[r.type], operands=[r]).result
    rough = _multiply(square, _multiply(x, size))
    return _multiply(rough, _fma(e, _splat(s.type, 1.5), _splat(s.type, 1.0)))


def _error(a: Any, b: Any) -> Any:
    """``1 - a * b``."""
    ir = mlir.ir
    negative = ir.Operation.create("arith.negf", results=[a.type], operands=[a]).result
    return _fma(negative, b, _splat(a.type, 1.0))


def _bounded(e: Any, predicate: str, bound: float) -> Any:
    """An error where it is above or below a bound that none exceeds; the bound where it is NaN."""
    ir = mlir.ir
    least = _splat(e.type, bound)
    i1 = ir.VectorType.get(e.type.shape, ir.IntegerType.get_signless(1))
    number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _PREDICATES[predicate])
    inside = ir.Operation.create(
        "arith.cmpf", results=[i1], operands=[e, least], attributes={"predicate": number}
    ).result
    return ir.Operation.create("arith.select", results=[e.type], operands=[inside, e, least]).result


def _estimate(s: Any) -> Any:
    """``1 / sqrt(s)``, off by at most 2^-14 of it."""
    (lanes,) = s.type.shape
    ir = mlir.ir
    mask = ir.IntegerType.get_signless(max(lanes, _MASK_BITS))
    everywhere = ir.Operation.create(
        "llvm.mlir.constant", results=[mask], attributes={"value": ir.IntegerAttr.get(mask, -1)}
    ).result
    return intrinsic(f"rsqrt14.ps.{32 * lanes}", s, s, everywhere)


def _multiply(a: Any, b: Any) -> Any:
    return mlir.ir.Operation.create("arith.mulf", results=[a.type], operands=[a, b]).result


def _fma(a: Any, b: Any, c: Any) -> Any:
    return mlir.ir.Operation.create("math.fma", results=[a.type], operands=[a, b, c]).result


def _splat(type_: Any, number: float) -> Any:
    ir = mlir.ir
    value = ir.DenseElementsAttr.get_splat(type_, ir.FloatAttr.get(type_.element_type, number))
    return ir.Operation.create(
        "arith.constant", results=[type_], attributes={"value": value}
    ).result
