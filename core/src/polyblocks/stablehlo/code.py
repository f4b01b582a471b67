"""Scalar code: one function per operation of ``arith``, ``math`` and ``complex`` that is needed.

All of them append to the current insertion point, with the current location.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyblocks.mlir import ir
from polyblocks.stablehlo.element import Element

#: Predicates of ``arith.cmpf`` and ``arith.cmpi``.
_FLOAT = {"oeq": 1, "ogt": 2, "oge": 3, "olt": 4, "ole": 5, "ord": 7, "une": 13, "uno": 14}
_INTEGER = {
    "eq": 0, "ne": 1, "slt": 2, "sle": 3, "sgt": 4, "sge": 5,
    "ult": 6, "ule": 7, "ugt": 8, "uge": 9,
}  # fmt: skip


def emit(name: str, operands: Sequence[Any], kind: Any = None, **attributes: Any) -> Any:
    """Append an operation with one result, of the first operand's type unless told otherwise."""
    kind = operands[0].type if kind is None else kind
    op = ir.Operation.create(
        name, results=[kind], operands=list(operands), attributes=attributes or None
    )
    return op.results[0]


def constant(element: Element, value: Any) -> Any:
    """A number of an element type."""
    if element.is_complex:
        number = complex(value)
        part = element.part
        parts = [part.attribute(number.real), part.attribute(number.imag)]
        return emit("complex.constant", [], element.type, value=ir.ArrayAttr.get(parts))
    return emit("arith.constant", [], element.type, value=element.attribute(value))


def is_constant(value: Any, number: float) -> bool:
    """Whether a float is a constant with this value."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return False
    return bool(ir.FloatAttr(owner.attributes["value"]).value == number)


def index(value: int) -> Any:
    """A constant of type index."""
    kind = ir.IndexType.get()
    return emit("arith.constant", [], kind, value=ir.IntegerAttr.get(kind, value))


def compare_float(predicate: str, x: Any, y: Any) -> Any:
    """``arith.cmpf``."""
    return _compare("arith.cmpf", _FLOAT[predicate], x, y)


def compare_int(predicate: str, x: Any, y: Any) -> Any:
    """``arith.cmpi``."""
    return _compare("arith.cmpi", _INTEGER[predicate], x, y)


def _compare(name: str, predicate: int, x: Any, y: Any) -> Any:
    attribute = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), predicate)
    return emit(name, [x, y], ir.IntegerType.get_signless(1), predicate=attribute)


def select(condition: Any, x: Any, y: Any) -> Any:
    """``condition ? x : y``."""
    return emit("arith.select", [condition, x, y], x.type)


def both(x: Any, y: Any) -> Any:
    """Logical or bitwise and."""
    return emit("arith.andi", [x, y])


def either(x: Any, y: Any) -> Any:
    """Logical or bitwise or."""
    return emit("arith.ori", [x, y])


def negated(x: Any) -> Any:
    """The opposite of a truth value."""
    return emit("arith.xori", [x, constant(Element("i1"), True)])


def is_nan(x: Any) -> Any:
    """Whether a float is NaN."""
    return compare_float("uno", x, x)


def parts(x: Any) -> tuple[Any, Any]:
    """Real and imaginary part."""
    kind = ir.ComplexType(x.type).element_type
    return emit("complex.re", [x], kind), emit("complex.im", [x], kind)


def join(re: Any, im: Any) -> Any:
    """A complex number."""
    return emit("complex.create", [re, im], ir.ComplexType.get(re.type))
