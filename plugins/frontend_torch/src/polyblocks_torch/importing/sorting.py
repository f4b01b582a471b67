"""The order of sorted rows: an op, and its lowering to a sort of keys and places."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from polyblocks import mlir
from polyblocks_torch.importing.torch_dialect import (
    Lowering,
    builtin_type,
    from_builtin,
    tensor_type,
    to_builtin,
)

_library = torch.library.Library("polyblocks", "FRAGMENT")
_library.define("order_of_keys(Tensor keys) -> Tensor")


def _eager(keys: Tensor) -> Tensor:
    return keys.argsort(stable=True, dim=-1)


def _shape(keys: Tensor) -> Tensor:
    return torch.empty_like(keys, dtype=torch.int64, memory_format=torch.contiguous_format)


_library.impl("order_of_keys", _eager, "CompositeExplicitAutograd")
_library.impl("order_of_keys", _shape, "Meta")


def order_of_keys(keys: Tensor) -> Tensor:
    """Places of the elements of each row, along the last dimension, in ascending order of keys.

    Args:
        keys: [..., n] of signed integers; equal ones keep their order.

    Returns:
        int64 [..., n]. Only as many of the first places are computed as are used.
    """
    result: Tensor = torch.ops.polyblocks.order_of_keys(keys)
    return result


def _applies(op: Any) -> bool:
    return builtin_type(op.operands[0].type) is not None


def _replace(op: Any) -> None:
    ir = mlir.ir
    arith, linalg, tensor = (mlir.dialect(name) for name in ("arith", "linalg", "tensor"))
    kind, source = tensor_type(op.results[0].type), tensor_type(op.operands[0].type)
    rank = len(source.shape)
    with ir.InsertionPoint(op), op.location:
        out = tensor.EmptyOp(list(kind.shape), kind.element_type).result
        identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(rank))
        parallel = ir.Attribute.parse("#linalg.iterator_type<parallel>")
        iota = linalg.GenericOp(
            [kind], [], [out], ir.ArrayAttr.get([identity]), ir.ArrayAttr.get([parallel] * rank)
        )
        block = ir.Block.create_at_start(
            iota.regions[0], [kind.element_type], arg_locs=[op.location]
        )
        with ir.InsertionPoint(block):
            place = arith.IndexCastOp(kind.element_type, linalg.IndexOp(rank - 1).result)
            linalg.YieldOp([place.result])
        sort = ir.Operation.create(
            "tm_tensor.sort",
            results=[source, kind],
            operands=[to_builtin(op.operands[0]), iota.results[0]],
            attributes={
                "dimension": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), rank - 1),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 2]),
            },
            regions=1,
        )
        types = [source.element_type] * 2 + [kind.element_type] * 2
        block = ir.Block.create_at_start(sort.regions[0], types, arg_locs=[op.location] * 4)
        with ir.InsertionPoint(block):
            first, second = list(block.arguments)[:2]
            before = arith.CmpIOp(arith.CmpIPredicate.slt, first, second).result
            ir.Operation.create("tm_tensor.yield", operands=[before])
        new = from_builtin(sort.results[1], op.results[0].type)
        op.results[0].replace_all_uses_with(new)
    op.erase()


#: Op name -> its lowering.
SORTS = {"polyblocks.order_of_keys": Lowering(_replace, _applies)}
