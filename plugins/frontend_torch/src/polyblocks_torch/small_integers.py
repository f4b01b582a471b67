"""What torch-mlir does not do well with integers of 8 and 16 bits.

It crashes on numbers in operations on bytes, and makes integers of floats in one step, which is not
defined for what the type with a sign does not hold: unsigned ones from 128 on among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

from polyblocks import mlir

_BYTES = (torch.int8, torch.uint8)


def tensors_for_numbers(gm: fx.GraphModule) -> None:
    """Rewrite ``mul(x, 3)`` to ``mul(x, full([], 3, dtype=int8))`` in place.

    Only where the result is an 8-bit integer as well; there PyTorch wraps the number around, and
    so does this. Graphs that control flow runs are rewritten, too.
    """
    for inner in gm.children():
        if isinstance(inner, fx.GraphModule):
            tensors_for_numbers(inner)
    for node in list(gm.graph.nodes):
        value = node.meta.get("val")
        if not isinstance(node.target, torch._ops.OpOverload) or not isinstance(
            value, torch.Tensor
        ):
            continue
        if value.dtype not in _BYTES:
            continue
        if (
            node.target._overloadname == "Scalar"
            and "Tensor" in node.target.overloadpacket.overloads()
        ):
            node.target = node.target.overloadpacket.Tensor
        for index, argument in enumerate(node.target._schema.arguments[: len(node.args)]):
            number = node.args[index]
            if isinstance(number, int) and str(argument.type) == "Tensor":
                node.update_arg(index, _full(gm, node, number, value))
    gm.recompile()


def _full(gm: fx.GraphModule, before: fx.Node, number: int, like: torch.Tensor) -> fx.Node:
    low = torch.iinfo(like.dtype).min
    wrapped = (number - low) % 256 + low
    with gm.graph.inserting_before(before):
        made = gm.graph.call_function(
            torch.ops.aten.full.default,
            ([], wrapped),
            {"dtype": like.dtype, "device": like.device, "pin_memory": False},
        )
    made.meta = {k: v for k, v in before.meta.items() if k == "stack_trace"}
    # Shape inference reads the metadata; a view of it has the right mode and dtype.
    made.meta["val"] = like.new_empty(())
    return made


#: Operations that make integers of floats.
CONVERSIONS = frozenset({"arith.fptosi", "arith.fptoui"})


def convert_in_two_steps(conversions: Sequence[Any]) -> None:
    """Let floats become small integers by way of 32 bits, whose lower ones are taken, in place.

    That is what eager mode does: ``-1.5`` becomes the byte 255, and 300 the byte 44.

    Args:
        conversions: all :data:`CONVERSIONS` of a module.
    """
    ir = mlir.ir
    for op in conversions:
        type_ = op.results[0].type
        if not isinstance(type_, ir.IntegerType) or not 1 < type_.width < 32:
            continue
        with ir.InsertionPoint(op), op.location:
            wide = ir.Operation.create(
                "arith.fptosi", results=[ir.IntegerType.get_signless(32)], operands=[op.operands[0]]
            )
            narrow = ir.Operation.create(
                "arith.trunci", results=[op.results[0].type], operands=[wide.results[0]]
            )
        op.results[0].replace_all_uses_with(narrow.results[0])
        op.erase()
