"""Places of sorted rows that a program reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from polyblocks.passes.tensor.control_flow import is_argument


@dataclass(frozen=True)
class Read:
    """An operation that reads places of sorted rows.

    Attributes:
        use: of the sorted tensor.
        end: the place behind the last one that is read.
        place: the only one that is read of each row: an int, or a tensor of integers with one for
            each row, in the dimensions of the sorted tensor but that of a row has extent 1; None
            if there are several.
    """

    use: Any
    end: int
    place: Any = None

    def redirect(self, tensor: Any, dim: int) -> None:
        """Read the only place from a tensor that has it alone.

        Args:
            tensor: of extent 1 along the dimension.
            dim: the dimension along which rows lie.
        """
        from polyblocks.mlir import dialect, ir

        owner = self.use.owner.operation
        owner.operands[0] = tensor
        if owner.name == "tensor.extract_slice":
            offsets = list(ir.DenseI64ArrayAttr(owner.attributes["static_offsets"]))
            offsets[dim] = 0
            owner.attributes["static_offsets"] = ir.DenseI64ArrayAttr.get(offsets)
            return
        with ir.InsertionPoint(owner), owner.location:
            zero = dialect("arith").ConstantOp(ir.IndexType.get(), 0).result
        owner.operands[1 + dim] = zero


def reads_of(result: Any, dim: int) -> list[Read]:
    """All reads of a sorted tensor.

    Args:
        result: of a sort.
        dim: the dimension along which rows lie.
    """
    extent = int(result.type.shape[dim])
    return [
        _slice(use, dim, extent) or _lookup(use, dim) or Read(use, extent) for use in result.uses
    ]


def _slice(use: Any, dim: int, extent: int) -> Read | None:
    from polyblocks.mlir import ir

    owner = use.owner.operation
    if owner.name != "tensor.extract_slice":
        return None
    offset, size, stride = (
        ir.DenseI64ArrayAttr(owner.attributes[name])[dim]
        for name in ("static_offsets", "static_sizes", "static_strides")
    )
    end = offset + (size - 1) * stride + 1
    if not 0 <= offset < end <= extent:
        return None
    return Read(use, end, offset if size == 1 else None)


def _lookup(use: Any, dim: int) -> Read | None:
    """A read in the body of a generic, at a place that an element of another tensor is."""
    from polyblocks.mlir import ir

    extract = use.owner.operation
    if extract.name != "tensor.extract":
        return None
    generic = extract.block.owner.operation
    if generic.name != "linalg.generic":
        return None
    shape = list(extract.operands[0].type.shape)
    index = list(extract.operands)[1:]
    loops = [d for d in range(len(shape)) if d != dim]
    if not all(_is_loop(index[d], d, shape[d]) for d in loops):
        return None
    cast = index[dim]
    if is_argument(cast) or cast.owner.operation.name != "arith.index_cast":
        return None
    (place,) = cast.owner.operation.operands
    if not is_argument(place):
        return None
    number = ir.BlockArgument(place).arg_number
    if number >= len(generic.operands):
        return None
    tensor = generic.operands[number]
    maps = list(generic.attributes["indexing_maps"])
    identity = ir.AffineMap.get_identity(len(shape))
    shape[dim] = 1
    if ir.AffineMapAttr(maps[number]).value != identity or list(tensor.type.shape) != shape:
        return None
    return Read(use, int(extract.operands[0].type.shape[dim]), tensor)


def _is_loop(index: Any, loop: int, extent: int) -> bool:
    from polyblocks.mlir import ir

    if is_argument(index):
        return False
    op = index.owner.operation
    if op.name == "linalg.index":
        return ir.IntegerAttr(op.attributes["dim"]).value == loop
    return extent == 1 and op.name == "arith.constant"
