"""Where tensors will be: what is updated in place, and which buffer a result is brought to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

#: Operations whose result has the place of an operand, and which operand that is.
_IN_PLACE = {
    "tensor.cast": 0,
    "tensor.collapse_shape": 0,
    "tensor.expand_shape": 0,
    "tensor.insert": 1,
    "tensor.insert_slice": 1,
}
_MATERIALIZE = "bufferization.materialize_in_destination"


def is_tensor(type_: Any) -> bool:
    """Whether it is the type of a tensor."""
    from polyblocks.mlir import ir

    return isinstance(type_, ir.RankedTensorType)


def alloc(type_: Any) -> Any:
    """A new buffer, at the insertion point, for a tensor or buffer of this type."""
    from polyblocks.mlir import dialect, ir

    type_ = ir.MemRefType.get(type_.shape, type_.element_type)
    return dialect("memref").AllocOp(type_, [], []).result


def materialize(value: Any, buffer: Any) -> None:
    """Bring a tensor to a buffer, in which it may be made in the first place."""
    from polyblocks.mlir import dialect, ir

    owner = value.owner
    if not isinstance(owner, ir.Block) and owner.operation.name == "tensor.empty":
        return
    dialect("bufferization").MaterializeInDestinationOp(
        None, value, buffer, restrict=True, writable=True
    )


def fill(value: Any, buffer: Any) -> None:
    """Put a tensor into a buffer that will change.

    Where others use the tensor too, it must not be made there in the first place.
    """
    from polyblocks.mlir import dialect

    if _is_alone(value):
        materialize(value, buffer)
        return
    bufferization = dialect("bufferization")
    made = bufferization.ToBufferOp(buffer.type, value, read_only=True).result
    dialect("memref").CopyOp(made, buffer)


def _is_alone(value: Any) -> bool:
    """Whether a tensor, and what it is another shape of, has one user."""
    from polyblocks.mlir import ir

    while len(list(value.uses)) == 1:
        owner = value.owner
        if isinstance(owner, ir.Block) or _IN_PLACE.get(owner.operation.name) != 0:
            return True
        value = owner.operation.operands[0]
    return False


def root(value: Any) -> Any:
    """The tensor that ``value`` is an updated version of, through all that works in place."""
    from polyblocks.mlir import ir

    while not isinstance(value.owner, ir.Block):
        op = value.owner.operation
        if op.name in _IN_PLACE:
            value = op.operands[_IN_PLACE[op.name]]
        elif op.name == "linalg.generic":
            first = op.attributes["operandSegmentSizes"][0]
            value = op.operands[first + value.result_number]
        else:
            break
    return value


def users(value: Any) -> Iterator[Any]:
    """Who uses a tensor, or another one that may be in the same place."""
    pending, seen = [value], {value}
    while pending:
        for use in pending.pop().uses:
            user = use.owner.operation
            yield user
            aliases = user.name == "tensor.extract_slice" or user.name in _IN_PLACE
            for result in user.results if aliases else _accumulated(user, use.operand_number):
                if result not in seen:
                    seen.add(result)
                    pending.append(result)


def _accumulated(op: Any, operand: int) -> list[Any]:
    """The result that an operation computes over an operand, if it does."""
    if op.name != "linalg.generic":
        return []
    position = operand - op.attributes["operandSegmentSizes"][0]
    return [op.results[position]] if position >= 0 else []


def destination(op: Any, result: Any) -> Any:
    """The buffer that only this result is copied to, or None.

    The materialization is gone then, since the loop leaves its result there.
    """
    from polyblocks.mlir import ir

    uses = list(result.uses)
    if len(uses) != 1:
        return None
    user = uses[0].owner.operation
    if user.name != _MATERIALIZE or user.block != op.block or user.operands[0] != result:
        return None
    buffer = user.operands[1]
    if not isinstance(buffer.type, ir.MemRefType) or not _is_dense(buffer.type):
        return None
    owner = buffer.owner
    if not isinstance(owner, ir.Block):
        if owner.operation.name != "memref.alloc" or owner.operation.block != op.block:
            return None
        owner.operation.move_before(op)
    elif owner.owner.operation.name != "func.func":
        return None
    user.erase()
    return buffer


def _is_dense(type_: Any) -> bool:
    from polyblocks.mlir import ir

    return type_ == ir.MemRefType.get(type_.shape, type_.element_type)


def ancestor(op: Any, block: Any) -> Any:
    """The operation of a block that contains ``op``."""
    while op.block != block:
        op = op.parent.operation
    return op
