"""Affine maps of values that are known at run time only, as arithmetic on them."""

from __future__ import annotations

from typing import Any

from polyblocks.affine.model import Node, Value
from polyblocks.affine.ops import Ops
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
    ops = Ops(location=op.location)

    def compute(expr: Any) -> Value | None:
        if isinstance(expr, ir.AffineDimExpr):
            return operands[expr.position]
        if isinstance(expr, ir.AffineSymbolExpr):
            return operands[amap.n_dims + expr.position]
        if isinstance(expr, ir.AffineConstantExpr):
            return ops.constant(expr.value, index)
        left, right = compute(expr.lhs), compute(expr.rhs)
        if left is None or right is None:
            return None
        if isinstance(expr, ir.AffineModExpr):
            # Never negative, unlike a remainder.
            whole = ops.op("arith.floordivsi", [left, right])
            return ops.op("arith.subi", [left, ops.op("arith.muli", [whole, right])])
        name = _OPERATIONS.get(type(expr).__name__)
        return None if name is None else ops.op(name, [left, right])

    value = compute(amap.results[0])
    if value is not None:
        body.extend(ops.out)
    return value
