"""Operations that hold control flow: which they are, and how they are written anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

#: Loops and branches; their regions are programs of their own.
CONTROL_FLOW = ("scf.for", "scf.if", "scf.index_switch", "scf.while")
LOOPS = ("scf.for", "scf.while")
BRANCHES = ("scf.if", "scf.index_switch")


def besides_bodies(module: Any) -> list[Any]:
    """All operations of a module, parents first, but not those in bodies of ``linalg.generic``.

    These are most of them, and scalar ones.
    """
    from polyblocks.mlir import ir

    found: list[Any] = []
    add, go_on, go_past = found.append, ir.WalkResult.ADVANCE, ir.WalkResult.SKIP

    def visit(op: Any) -> Any:
        add(op)
        return go_past if op.name == "linalg.generic" else go_on

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def control_flow_of(module: Any) -> list[Any]:
    """All loops and branches of a module, outer before inner.

    Bodies of operations on tensors contain no control flow of the program.
    """
    return [op for op in besides_bodies(module) if op.name in CONTROL_FLOW]


def terminator(block: Any) -> Any:
    """The last operation of a block."""
    return block.operations[len(block.operations) - 1].operation


def set_operands(op: Any, operands: Sequence[Any]) -> Any:
    """Write a terminator anew with other operands."""
    from polyblocks.mlir import ir

    with ir.InsertionPoint(op):
        new = ir.Operation.create(
            op.name, operands=list(operands), attributes=attributes_of(op), loc=op.location
        )
    op.erase()
    return new


def is_argument(value: Any) -> bool:
    """Whether a value is an argument of a block, not the result of an operation."""
    from polyblocks.mlir import ir

    return isinstance(value.owner, ir.Block)


def attributes_of(op: Any) -> dict[str, Any]:
    """The attributes by name."""
    return {name: op.attributes[name] for name in op.attributes}


def rebuild(
    op: Any, operands: Sequence[Any], results: Sequence[Any], arguments: Sequence[Sequence[Any]]
) -> Any:
    """Write a loop or branch anew in front of itself, with the contents of its blocks.

    The old block arguments and results have uses still; the caller replaces them, and erases
    ``op``, whose blocks are left empty of all but their arguments.

    Args:
        op: of :data:`CONTROL_FLOW`.
        operands: all operands of the new one.
        results: types of its results.
        arguments: for each region the types of its block's arguments.
    """
    from polyblocks.mlir import ir

    with ir.InsertionPoint(op):
        new = ir.Operation.create(
            op.name,
            results=list(results),
            operands=list(operands),
            attributes=attributes_of(op),
            regions=len(op.regions),
            loc=op.location,
        )
    for region, old, types in zip(new.regions, op.regions, arguments, strict=True):
        if not len(old.blocks):
            continue
        block = region.blocks.append(*types)
        for inner in list(old.blocks[0].operations):
            block.append(inner.operation)
    return new
