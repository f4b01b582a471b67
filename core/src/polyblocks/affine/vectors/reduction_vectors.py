"""Reductions in vectors: what lanes start with, and how accumulators and lanes are joined."""

from __future__ import annotations

from typing import Any

from polyblocks.affine.analysis.reductions import COMMUTATIVE
from polyblocks.affine.model import Op
from polyblocks.affine.vectors.vector_ops import extract, shuffle
from polyblocks.mlir import ir

#: The value that changes nothing, of the others. x + -0.0 is x for both zeros.
_NEUTRAL = {
    "arith.addf": -0.0,
    "arith.mulf": 1.0,
    "arith.addi": 0,
    "arith.muli": 1,
    "arith.xori": 0,
}
#: Ops with ``op(x, x) = x``: every lane may start with the value that the reduction starts with.
IDEMPOTENT = COMMUTATIVE - _NEUTRAL.keys()


def identity(name: str, type_: Any) -> Any:
    """Attribute of the element that changes nothing, for ops that are not idempotent."""
    value = _NEUTRAL[name]
    if isinstance(type_, ir.FloatType):
        return ir.FloatAttr.get(type_, value)
    return ir.IntegerAttr.get(type_, int(value))


def combine(op: Op, left: Any, right: Any) -> Any:
    """One application of a reduction's op, on scalars or vectors."""
    return ir.Operation.create(
        op.name,
        results=[left.type],
        operands=[left, right],
        attributes=op.attributes,
        loc=op.location or ir.Location.unknown(),
    ).results[0]


def join_lanes(op: Op, vector: Any) -> Any:
    """All lanes of a vector in one scalar.

    Halves of the vector are combined until one lane is left, so that every type does that has the
    op on vectors.
    """
    return extract(narrowed(op, vector, 1), 0)


def narrowed(op: Op, vector: Any, width: int) -> Any:
    """Halves of a vector, combined until ``width`` lanes are left; both are powers of two."""
    while (half := vector.type.shape[0] // 2) >= width:
        low = shuffle(vector, vector, list(range(half)))
        vector = combine(op, low, shuffle(vector, vector, list(range(half, 2 * half))))
    return vector
