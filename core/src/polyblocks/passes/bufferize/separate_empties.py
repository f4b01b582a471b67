"""separate-empties: every result starts in an empty tensor of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.passes import facts
from polyblocks.passes.tensor.control_flow import besides_bodies


@dataclass(frozen=True)
class SeparateEmptiesPass:
    """Clone ``tensor.empty`` for each use, and what is accumulated into.

    Bufferization would otherwise compute one tensor in the buffer of another one that it does not
    need any more. That saves memory which fusion and memory planning save anyway, and ties
    together what fusion wants apart.

    Before::

        %e = tensor.empty() : tensor<4xf32>
        %a = linalg.generic ... outs(%e : tensor<4xf32>)
        %b = linalg.generic ... outs(%e : tensor<4xf32>)

    After: ``%a`` and ``%b`` each have a ``tensor.empty`` of their own.

    An op in the body of a loop or branch gets its own in the body.

    A tensor that one op accumulates into while others use it too (``cse`` merges the zeros that
    two sums start from) is filled again, or copied, for that op. This is not for speed: the
    buffer of such a tensor may be a result's (``eliminate-empties``), and bufferization, which
    trusts that nothing else looks at results, would let the second sum run in the first one's. So
    is a tensor into which a slice is put while others use what it was behind that; if it consists
    of slices in an empty one (``cse`` merges what steps of a stencil have in common), these are
    put once more, which moves less than a copy.
    """

    name: ClassVar[str] = "separate-empties"
    needs: ClassVar[frozenset[str]] = frozenset({facts.TENSORS})
    establishes: ClassVar[frozenset[str]] = frozenset({facts.OWN_EMPTIES})

    def run(self, module: Any, context: Any) -> None:
        """Rewrite in place."""
        from polyblocks.mlir import ir

        del context
        shared: list[Any] = []
        empties: list[Any] = []
        for op in besides_bodies(module):
            if op.name == "tensor.empty":
                empties.append(op)
            elif _is_destination_style(op) or op.name == "tensor.insert_slice":
                shared.append(op)
        # From the end: what is made anew uses what was made before it once more.
        for op in reversed(shared):
            for result in op.results:
                _separate_destinations(op, result)
        for op in empties:
            uses = list(op.results[0].uses)
            # The body of a loop or branch has an empty tensor of its own.
            same = any(use.owner.operation.block == op.block for use in uses[:1])
            for use in uses[1:] if same else uses:
                owner = use.owner.operation
                with ir.InsertionPoint(owner):
                    copy = op.clone()
                owner.operands[use.operand_number] = copy.results[0]


def _separate_destinations(op: Any, result: Any) -> None:
    from polyblocks import mlir

    ir, bufferization = mlir.ir, mlir.dialect("bufferization")
    uses = list(result.uses)
    if len(uses) < 2 and not any(use.owner.operation.block != op.block for use in uses):
        return
    for use in uses:
        owner = use.owner.operation
        if len(uses) < 2 and not _begins_empty(op):
            # Bufferization copies what the body of a loop must not change.
            continue
        operand = use.operand_number
        if not _is_destination(owner, operand) and not _is_updated(owner, operand, uses):
            continue
        with ir.InsertionPoint(owner), op.location:
            if _begins_empty(op):
                # Its destination gets as many uses; they are separated afterwards.
                value = op.clone().results[result.result_number]
            else:
                value = bufferization.AllocTensorOp(result.type, [], copy=result).result
        owner.operands[use.operand_number] = value


def _is_destination_style(op: Any) -> bool:
    dialect = op.name.partition(".")[0]
    return dialect in ("linalg", "tm_tensor") and "operandSegmentSizes" in op.attributes


def _is_destination(op: Any, operand: int) -> bool:
    """Whether an op writes its result over this operand."""
    return _is_destination_style(op) and operand >= op.attributes["operandSegmentSizes"][0]


def _is_updated(op: Any, operand: int, uses: list[Any]) -> bool:
    """Whether an op puts a slice into a tensor that others use behind it."""
    if op.name != "tensor.insert_slice" or operand != 1:
        return False
    for use in uses:
        other = use.owner.operation
        if other == op and use.operand_number == operand:
            continue
        while other.block != op.block and other.parent is not None:
            other = other.parent.operation
            if other.name == "func.func":
                return True
        if not other.is_before_in_block(op):
            return True
    return False


def _begins_empty(op: Any) -> bool:
    """Whether an op fills an empty tensor, or puts slices into one."""
    while op.name == "tensor.insert_slice":
        destination = op.operands[1].owner
        if not hasattr(destination, "operation"):
            return False
        op = destination.operation
        if op.name == "tensor.empty":
            return True
    return _is_destination_style(op) and _is_fill(op)


def _is_fill(op: Any) -> bool:
    """Whether an op reads no tensor and begins with an empty one."""
    from polyblocks.mlir import ir

    inputs = op.attributes["operandSegmentSizes"][0]
    return len(op.operands) == inputs + 1 and all(
        not isinstance(o.type, ir.RankedTensorType) for o in list(op.operands)[:inputs]
    )
