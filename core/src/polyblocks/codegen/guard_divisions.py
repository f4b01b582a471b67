"""guard-divisions: integer divisions that are undefined get a meaning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks import mlir
from polyblocks.mlir import constant_integer

_SIGNED = frozenset({"arith.ceildivsi", "arith.divsi", "arith.floordivsi", "arith.remsi"})
#: Ops that are undefined for some integers.
DIVISIONS = _SIGNED | {"arith.ceildivui", "arith.divui", "arith.remui"}

#: The beginning is what PyTorch says.
MESSAGE = "ZeroDivisionError: an integer is divided by zero"


@dataclass(frozen=True)
class GuardDivisionsPass:
    """Division by zero fails a run-time check; the lowest number by -1 wraps around.

    Both are undefined in MLIR and LLVM, and some chips stop the process. Divisions by constants
    stay, unless the constant is 0 or -1; a divisor that a ``select`` takes the zeros from needs no
    check, which would keep its loop from being vectorized. Runs before checks are lowered.

    Before::

        %q = arith.divsi %x, %y : i32

    After::

        %ok = arith.cmpi ne, %y, %zero : i32
        cf.assert %ok, "ZeroDivisionError: an integer is divided by zero"
        %overflows = arith.andi (%y == -1), (%x == lowest)
        %safe = arith.select %overflows, %one, %y : i32
        %q = arith.divsi %x, %safe : i32
    """

    name: ClassVar[str] = "guard-divisions"

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite the module in place; returns whether there was a division."""
        del context
        ir = mlir.ir
        found: list[Any] = []

        def visit(op: Any) -> Any:
            if op.name in DIVISIONS:
                found.append(op)
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit)
        with module.context:
            for op in found:
                # Of vectors there is nothing that could be asserted.
                if isinstance(op.results[0].type, ir.IntegerType | ir.IndexType):
                    with op.location, ir.InsertionPoint(op):
                        _guard(op)
        return bool(found)


def _guard(op: Any) -> None:
    ir = mlir.ir
    arith = mlir.dialect("arith")
    dividend, divisor = op.operands
    type_ = divisor.type

    def constant(value: int) -> Any:
        return arith.ConstantOp(type_, ir.IntegerAttr.get(type_, value)).result

    if not _excludes(divisor, 0):
        nonzero = arith.CmpIOp(arith.CmpIPredicate.ne, divisor, constant(0)).result
        mlir.dialect("cf").AssertOp(nonzero, MESSAGE)
    if op.name in _SIGNED and not _excludes(divisor, -1):
        width = 64 if isinstance(type_, ir.IndexType) else type_.width
        lowest = arith.CmpIOp(arith.CmpIPredicate.eq, dividend, constant(-(1 << (width - 1))))
        negative = arith.CmpIOp(arith.CmpIPredicate.eq, divisor, constant(-1))
        overflows = arith.AndIOp(lowest.result, negative.result).result
        op.operands[1] = arith.SelectOp(overflows, constant(1), divisor).result


def _excludes(value: Any, number: int) -> bool:
    """Whether an integer is never a number: another constant, or one replaced where it is that."""
    ir = mlir.ir
    known = constant_integer(value)
    if known is not None:
        return known != number
    if isinstance(value.owner, ir.Block) or value.owner.operation.name != "arith.select":
        return False
    condition, then, other = value.owner.operation.operands
    if _excludes(then, number) and _excludes(other, number):
        return True
    if isinstance(condition.owner, ir.Block) or condition.owner.operation.name != "arith.cmpi":
        return False
    comparison = condition.owner.operation
    arith = mlir.dialect("arith")
    equal, unequal = int(arith.CmpIPredicate.eq), int(arith.CmpIPredicate.ne)
    predicate = ir.IntegerAttr(comparison.attributes["predicate"]).value
    if predicate not in (equal, unequal) or constant_integer(comparison.operands[1]) != number:
        return False
    replaced, kept = (then, other) if predicate == equal else (other, then)
    return kept == comparison.operands[0] and _excludes(replaced, number)
