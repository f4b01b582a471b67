"""Affine maps and integer sets of MLIR as expressions of the model."""

from __future__ import annotations

from typing import Any

from polyblocks.affine.expr import Expr
from polyblocks.mlir import ir


class UnreadableError(Exception):
    """An operation that the model does not describe; it stays opaque."""


def expr_of(e: Any, dims: list[Expr], symbols: list[Expr]) -> Expr:
    """The value of an MLIR affine expression of these dimensions and symbols.

    Raises:
        UnreadableError: a product or a division of two variables.
    """
    if isinstance(e, ir.AffineDimExpr):
        return dims[e.position]
    if isinstance(e, ir.AffineSymbolExpr):
        return symbols[e.position]
    if isinstance(e, ir.AffineConstantExpr):
        return Expr(e.value)
    left, right = expr_of(e.lhs, dims, symbols), expr_of(e.rhs, dims, symbols)
    if isinstance(e, ir.AffineAddExpr):
        return left + right
    if isinstance(e, ir.AffineMulExpr):
        if right.is_constant:
            return left * right.const
        if left.is_constant:
            return right * left.const
    elif right.is_constant and right.const > 0:
        if isinstance(e, ir.AffineFloorDivExpr):
            return left // right.const
        if isinstance(e, ir.AffineModExpr):
            return left % right.const
        if isinstance(e, ir.AffineCeilDivExpr):
            return (left + (right.const - 1)) // right.const
    raise UnreadableError


def map_of_set(attribute: Any) -> Any:
    """The map whose results an integer set wants not to be negative.

    Raises:
        UnreadableError: the set has an equality.
    """
    text = str(attribute)
    if "==" in text:
        raise UnreadableError
    text = text.replace("affine_set", "affine_map").replace(" : ", " -> ").replace(" >= 0", "")
    return ir.Attribute.parse(text)


def constant_bound(attribute: Any) -> int | None:
    """The bound of a loop; None if it is not one constant."""
    amap = ir.AffineMapAttr(attribute).value
    if len(amap.results) != 1 or not isinstance(amap.results[0], ir.AffineConstantExpr):
        return None
    return int(amap.results[0].value)
