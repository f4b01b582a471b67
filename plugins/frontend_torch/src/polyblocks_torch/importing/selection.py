"""The k-th smallest elements of short rows: an op, and its lowering to one ``linalg.generic``.

All elements of a row are operands of the generic, at constant places; its body exchanges pairs of
them until the wanted one is where it belongs. There are no branches and no positions, and what
neighbouring rows share is loaded where it is.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from polyblocks import mlir
from polyblocks.frontends.selection import exchanges
from polyblocks_torch.importing.torch_dialect import (
    Lowering,
    builtin_type,
    from_builtin,
    tensor_type,
    to_builtin,
)

#: Rows that are short: all elements of one are in registers, or nearly so.
SHORT_ROW = 32

_library = torch.library.Library("polyblocks", "FRAGMENT")
_library.define("kth_of_short(Tensor x, int k) -> Tensor")


def _eager(x: Tensor, k: int) -> Tensor:
    return x.kthvalue(k + 1, -1).values


def _shape(x: Tensor, k: int) -> Tensor:
    del k
    return x.new_empty(x.shape[:-1])


_library.impl("kth_of_short", _eager, "CompositeExplicitAutograd")
_library.impl("kth_of_short", _shape, "Meta")


def kth_of_short(x: Tensor, k: int) -> Tensor:
    """The k-th smallest element (from 0 on) of each row, along the last dimension.

    Args:
        x: [..., n], n at most :data:`SHORT_ROW`, of float32, float64, or signed integers. Of rows
            with NaN any element may come.
        k: less than n.

    Returns:
        [...].
    """
    result: Tensor = torch.ops.polyblocks.kth_of_short(x, k)
    return result


def _applies(op: Any) -> bool:
    return builtin_type(op.operands[0].type) is not None


def _replace(op: Any) -> None:
    ir = mlir.ir
    linalg, tensor = mlir.dialect("linalg"), mlir.dialect("tensor")
    kind, source = tensor_type(op.results[0].type), tensor_type(op.operands[0].type)
    rank, count = len(kind.shape), source.shape[-1]
    place = int(op.operands[1].owner.attributes["value"].value)
    with ir.InsertionPoint(op), op.location:
        out = tensor.EmptyOp(list(kind.shape), kind.element_type).result
        row = [ir.AffineDimExpr.get(i) for i in range(rank)]
        indices = [[*row, ir.AffineConstantExpr.get(k)] for k in range(count)] + [row]
        maps = [ir.AffineMapAttr.get(ir.AffineMap.get(rank, 0, index)) for index in indices]
        parallel = ir.Attribute.parse("#linalg.iterator_type<parallel>")
        generic = linalg.GenericOp(
            [out.type],
            [to_builtin(op.operands[0])] * count,
            [out],
            ir.ArrayAttr.get(maps),
            ir.ArrayAttr.get([parallel] * rank),
        )
        types = [kind.element_type] * (count + 1)
        block = ir.Block.create_at_start(
            generic.regions[0], types, arg_locs=[op.location] * len(types)
        )
        with ir.InsertionPoint(block):
            linalg.YieldOp([_selected(list(block.arguments)[:count], place)])
        new = from_builtin(generic.results[0], op.results[0].type)
        op.results[0].replace_all_uses_with(new)
    op.erase()


def _selected(row: list[Any], place: int) -> Any:
    """The element of a row that belongs at a place."""
    arith = mlir.dialect("arith")
    is_float = isinstance(row[0].type, (mlir.ir.F32Type, mlir.ir.F64Type))
    for first, second, lesser, greater in exchanges(len(row), place):
        a, b = row[first], row[second]
        # Comparisons and choices that chips have as one instruction.
        if is_float:
            swaps = arith.CmpFOp(arith.CmpFPredicate.OLT, b, a).result
        else:
            swaps = arith.CmpIOp(arith.CmpIPredicate.slt, b, a).result
        if lesser:
            row[first] = arith.SelectOp(swaps, b, a).result
        if greater:
            row[second] = arith.SelectOp(swaps, a, b).result
    return row[place]


#: Op name -> its lowering.
SELECTIONS = {"polyblocks.kth_of_short": Lowering(_replace, _applies)}
