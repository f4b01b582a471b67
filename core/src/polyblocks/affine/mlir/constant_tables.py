"""Constants that a pass has made of a program's numbers."""

from __future__ import annotations

from typing import Any

from polyblocks.mlir import ir

_NAME = "__table_"


def constant_table(block: Any, type_: Any, numbers: list[Any]) -> Any:
    """A new constant, as a value at the beginning of a block.

    Args:
        block: of ``@main``, or of a loop or branch in it.
        type_: the memref's.
        numbers: attributes of the elements, in row-major order.
    """
    module = block.owner
    while module.operation.parent is not None:
        module = module.operation.parent
    body = module.operation.regions[0].blocks[0]
    used = {
        op.attributes["sym_name"].value
        for op in body.operations
        if "sym_name" in op.operation.attributes
    }
    name = next(n for k in range(len(used) + 1) if (n := f"{_NAME}{k}") not in used)
    shaped = ir.RankedTensorType.get(type_.shape, type_.element_type)
    with ir.InsertionPoint.at_block_begin(body):
        ir.Operation.create(
            "memref.global",
            attributes={
                "sym_name": ir.StringAttr.get(name),
                "sym_visibility": ir.StringAttr.get("private"),
                "type": ir.TypeAttr.get(type_),
                "initial_value": ir.DenseElementsAttr.get(numbers, shaped),
                "constant": ir.UnitAttr.get(),
                "alignment": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 64),
            },
        )
    with ir.InsertionPoint.at_block_begin(block):
        return ir.Operation.create(
            "memref.get_global",
            results=[type_],
            attributes={"name": ir.FlatSymbolRefAttr.get(name)},
        ).results[0]
