"""Makes operations: each is put behind others, and its result is what the next ones take."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, TypeGuard

from polyblocks.affine.element import printed
from polyblocks.affine.expr import Expr
from polyblocks.affine.model import Index, Node, Op, Value
from polyblocks.affine.multiply import Multiply
from polyblocks.target import DOT_PREFIX

#: A function of LLVM's that computes a number from numbers.
INTRINSIC = "llvm.call_intrinsic"


class Integers(IntEnum):
    """Predicates of ``arith.cmpi``, with the dialect's numbers."""

    EQUAL = 0
    NOT_EQUAL = 1
    LESS = 2
    BELOW = 6  # of unsigned numbers


class Floats(IntEnum):
    """Predicates of ``arith.cmpf``, with the dialect's numbers."""

    EQUAL = 1
    GREATER = 2
    LESS = 4
    ORDERED = 7
    UNORDERED = 14


@dataclass
class Ops:
    """Puts operations behind ``out``.

    Attributes:
        out: the code so far.
        location: of the operations, or None.
    """

    out: list[Node] = field(default_factory=list)
    location: Any = None

    def op(
        self,
        name: str,
        operands: Iterable[Value],
        type_: Any = None,
        attributes: dict[str, Any] | None = None,
    ) -> Value:
        """An operation with one result, of the first operand's type unless another one is given."""
        values = list(operands)
        result = Value(values[0].type if type_ is None else type_)
        self.out.append(Op(name, values, attributes or {}, [result], self.location))
        return result

    def like(self, model: Op, operands: Iterable[Value]) -> Value:
        """An operation like another one, of other values; it takes that one's location."""
        op = like(model, operands)
        self.out.append(op)
        return op.results[0]

    def constant(self, number: float, type_: Any) -> Value:
        """A constant of an integer or floating-point type, or ``index``."""
        op = constant(number, type_, self.location)
        self.out.append(op)
        return op.results[0]

    def index(self, expr: Expr | int) -> Value:
        """An affine expression as a value of type index."""
        from polyblocks.mlir import ir

        result = Value(ir.IndexType.get())
        self.out.append(Index(result, expr if isinstance(expr, Expr) else Expr(expr)))
        return result

    def compare(self, predicate: Integers | Floats, first: Value, second: Value) -> Value:
        """Whether two numbers compare so, as an ``i1``."""
        name = "arith.cmpi" if isinstance(predicate, Integers) else "arith.cmpf"
        attributes = {"predicate": number_of(predicate, integer(64))}
        return self.op(name, [first, second], integer(1), attributes)

    def select(self, condition: Value, first: Value, second: Value) -> Value:
        """``first`` where the condition holds, else ``second``."""
        return self.op("arith.select", [condition, first, second], first.type)

    def intrinsic(self, name: str, operands: Iterable[Value], type_: Any = None) -> Value:
        """A call of one of LLVM's intrinsics."""
        values = list(operands)
        return self.op(INTRINSIC, values, type_, intrinsic_attributes(name, len(values)))

    def multiply(self, unit: str, accumulator: Value, a: Value, b: Value) -> Value:
        """An accumulator with the products of two words added to it by the unit of this name."""
        result = Value(accumulator.type)
        attributes = intrinsic_attributes(DOT_PREFIX + unit, 3)
        self.out.append(
            Multiply(INTRINSIC, [accumulator, a, b], attributes, [result], self.location)
        )
        return result


def intrinsic_attributes(name: str, operands: int) -> dict[str, Any]:
    """Attributes of a call of one of LLVM's intrinsics."""
    from polyblocks.mlir import ir

    return {
        "intrin": ir.StringAttr.get(name),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([operands, 0]),
        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
    }


def is_constant(node: Node) -> TypeGuard[Op]:
    """Whether a node makes a constant."""
    return isinstance(node, Op) and node.name == "arith.constant"


def constant_number(node: Node | None) -> float | None:
    """The number that a node makes, an integer or a truth value as it is; None for all else."""
    if node is None or not is_constant(node):
        return None
    number = getattr(node.attributes["value"], "value", None)
    return number if isinstance(number, (bool, int, float)) else None


def has_flag(op: Op, flag: str) -> bool:
    """Whether an operation has one of the dialect's fastmath flags, ``reassoc`` for one."""
    return flag in printed(op.attributes.get("fastmath", ""))


def integer(bits: int) -> Any:
    """The MLIR type of integers of ``bits`` bits."""
    from polyblocks.mlir import ir

    return ir.IntegerType.get_signless(bits)


def number_of(number: float, type_: Any) -> Any:
    """The attribute of a number of an integer or floating-point type, or ``index``."""
    from polyblocks.mlir import ir

    if isinstance(type_, ir.FloatType):
        return ir.FloatAttr.get(type_, number)
    return ir.IntegerAttr.get(type_, int(number))


def constant(number: float, type_: Any, location: Any = None, *, result: Value | None = None) -> Op:
    """A constant of a number's type, or of ``index``; ``result`` is new by default."""
    made = Value(type_) if result is None else result
    return Op("arith.constant", [], {"value": number_of(number, type_)}, [made], location)


def like(model: Op, operands: Iterable[Value], result: Value | None = None) -> Op:
    """An operation like another one, of other values; ``result`` is new by default."""
    made = Value(model.results[0].type) if result is None else result
    return type(model)(model.name, list(operands), model.attributes, [made], model.location)
