"""Casts of tensors, and the sizes that they say."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def unequal_cast(casts: Iterable[Any]) -> tuple[Any, Any, Any] | None:
    """The first cast that changes a static size.

    Args:
        casts: ``tensor.cast`` operations; each may take what another one gives.

    Returns:
        The operation, the type that its operand is cast from, its own; or None.
    """
    for op in casts:
        source, result = cast_from(op).type, op.results[0].type
        if any(a != b for a, b in extents(source, result) if a is not None and b is not None):
            return op, source, result
    return None


def cast_from(op: Any) -> Any:
    """The source type of a chain of casts."""
    from polyblocks.mlir import ir

    value = op.operands[0]
    while isinstance(value.owner, ir.Operation | ir.OpView) and (
        value.owner.operation.name == "tensor.cast"
    ):
        value = value.owner.operation.operands[0]
    return value


def extents(*types: Any) -> list[tuple[int | None, ...]]:
    """The extents of ranked types, by dimension; None where it is unknown."""
    from polyblocks.mlir import ir

    shapes = []
    for kind in types:
        if not isinstance(kind, ir.RankedTensorType):
            return []
        sizes = [(kind.is_dynamic_dim(d), kind.shape[d]) for d in range(kind.rank)]
        shapes.append([None if unknown else size for unknown, size in sizes])
    return list(zip(*shapes, strict=True))
