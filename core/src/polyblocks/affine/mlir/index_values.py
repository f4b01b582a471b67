"""Affine maps of values that are known at run time only, as arithmetic on them."""

from __future__ import annotations

from typing import Any

from polyblocks.affine.model import Node, Op, Value
from polyblocks.mlir import ir

_OPERATIONS = {
    "AffineAddExpr": "arith.addi",
    "AffineMulExpr": "arith.muli",
    "AffineFloorDivExpr": "arith.floordivsi",
    "AffineCeilDivExpr": "arith.ceildivsi",
}


def apply_map(op: Any, operands: list[Value], body: list[Node]) -> Value | None:
    """The result of an ``affine.apply`` of these operands, computed by nodes put behind ``body``.

    None, with ``body`` as it was, for a map with an expression of another kind.
    """
    amap = ir.AffineMapAttr(op.attributes["map"]).value
    index = ir.IndexType.get(op.context)
    nodes: list[Node] = []

    def operation(name: str, left: Value, right: Value) -> Value:
        result = Value(index)
        nodes.append(Op(name, [left, right], {}, [result], op.location))
        return result

    def compute(expr: Any) -> Value | None:
        if isinstance(expr, ir.AffineDimExpr):
            return operands[expr.position]
        if isinstance(expr, ir.AffineSymbolExpr):
            return operands[amap.n_dims + expr.position]
        if isinstance(expr, ir.AffineConstantExpr):
            result = Value(index)
            number = ir.IntegerAttr.get(index, expr.value)
            nodes.append(Op("arith.constant", [], {"value": number}, [result]))
            return result
        left, right = compute(expr.lhs), compute(expr.rhs)
        if left is None or right is None:
            return None
        if isinstance(expr, ir.AffineModExpr):
            # Never negative, unlike a remainder.
            whole = operation("arith.floordivsi", left, right)
            return operation("arith.subi", left, operation("arith.muli", whole, right))
        name = _OPERATIONS.get(type(expr).__name__)
        return None if name is None else operation(name, left, right)

    value = compute(amap.results[0])
    if value is not None:
        body.extend(nodes)
    return value
