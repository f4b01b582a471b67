"""check-sizes: no tensor is taken for one of another size."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.passes.tensor.control_flow import besides_bodies


@dataclass(frozen=True)
class CheckSizesPass:
    """Refuse a module whose casts change the size of a tensor, or invent one.

    MLIR lets a cast to an unknown size and back change it; the program then reads and writes past
    the end of the smaller buffer. All sizes of a program are static, so once the module is
    simplified a cast that is left is such a mistake of whoever made it.

    Refused::

        %a = tensor.cast %x : tensor<8xf32> to tensor<?xf32>
        %b = tensor.cast %a : tensor<?xf32> to tensor<4xf32>
    """

    name: ClassVar[str] = "check-sizes"

    def run(self, module: Any, context: Any) -> bool:
        """Look at the casts; nothing is changed.

        Raises:
            ValueError: the size of a tensor is not the one that a cast says.
        """
        del context
        casts = [op for op in besides_bodies(module) if op.name == "tensor.cast"]
        for op in casts:
            if not _says_more(op):
                continue
            raise ValueError(
                f"a tensor of type {_cast_from(op).type} is cast to {op.results[0].type}, whose "
                f"size it need not have, at {op.location}"
            )
        return False


def unequal_cast(casts: Iterable[Any]) -> tuple[Any, Any, Any] | None:
    """The first cast that changes a static size.

    Args:
        casts: ``tensor.cast`` operations; each may take what another one gives.

    Returns:
        The operation, the type that its operand is cast from, its own; or None.
    """
    for op in casts:
        source, result = _cast_from(op).type, op.results[0].type
        if any(a != b for a, b in _extents(source, result) if a is not None and b is not None):
            return op, source, result
    return None


def _says_more(op: Any) -> bool:
    """Whether a cast gives a static size that its operand is not known to have."""
    source, result = _cast_from(op).type, op.results[0].type
    return any(b is not None and a != b for a, b in _extents(source, result))


def _cast_from(op: Any) -> Any:
    """The source type of a chain of casts."""
    from polyblocks.mlir import ir

    value = op.operands[0]
    while isinstance(value.owner, ir.Operation | ir.OpView) and (
        value.owner.operation.name == "tensor.cast"
    ):
        value = value.owner.operation.operands[0]
    return value


def _extents(*types: Any) -> list[tuple[int | None, ...]]:
    """The extents of ranked types, by dimension; None where it is unknown."""
    from polyblocks.mlir import ir

    shapes = []
    for kind in types:
        if not isinstance(kind, ir.RankedTensorType):
            return []
        sizes = [(kind.is_dynamic_dim(d), kind.shape[d]) for d in range(kind.rank)]
        shapes.append([None if unknown else size for unknown, size in sizes])
    return list(zip(*shapes, strict=True))
