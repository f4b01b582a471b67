"""Sorted rows: an op, and its lowering to a sort of keys, elements and places."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from polyblocks import mlir
from polyblocks.algorithms.sorting.order import Order, create_sort
from polyblocks_torch.importing.torch_dialect import (
    Lowering,
    builtin_type,
    from_builtin,
    tensor_type,
    to_builtin,
)

_library = torch.library.Library("polyblocks", "FRAGMENT")
_library.define(
    "sorted_rows(Tensor x, Tensor keys, bool descending, int infinity, bool keyed)"
    " -> (Tensor, Tensor)"
)


def _eager(
    x: Tensor, keys: Tensor, descending: bool, infinity: int, keyed: bool
) -> tuple[Tensor, Tensor]:
    del infinity, keyed
    numbers = x if x.is_floating_point() else keys
    order = numbers.argsort(dim=-1, descending=descending, stable=True)
    return x.gather(-1, order), order


def _shape(
    x: Tensor, keys: Tensor, descending: bool, infinity: int, keyed: bool
) -> tuple[Tensor, Tensor]:
    del descending, infinity, keyed
    values, order = (
        torch.empty_like(keys, dtype=dtype, memory_format=torch.contiguous_format)
        for dtype in (x.dtype, torch.int64)
    )
    return values, order


_library.impl("sorted_rows", _eager, "CompositeExplicitAutograd")
_library.impl("sorted_rows", _shape, "Meta")


def sorted_rows(
    x: Tensor, keys: Tensor, descending: bool, infinity: int, keyed: bool
) -> tuple[Tensor, Tensor]:
    """The elements of each row, along the last dimension, in the order of their keys.

    Args:
        x: [..., n].
        keys: [..., n] of signed integers; equal ones keep their order.
        descending: whether large keys come first.
        infinity: the key of infinity of floating-point numbers; else 0.
        keyed: whether the keys are ``x`` itself, or its numbers in IEEE 754's total order.

    Returns:
        The elements, and int64 [..., n], their places. Only as many of the first ones are computed
        as are used.
    """
    results: tuple[Tensor, Tensor] = torch.ops.polyblocks.sorted_rows(
        x, keys, descending, infinity, keyed
    )
    return results


def _applies(op: Any) -> bool:
    return all(builtin_type(op.operands[i].type) is not None for i in range(2))


def _replace(op: Any) -> None:
    ir = mlir.ir
    arith, linalg, tensor = (mlir.dialect(name) for name in ("arith", "linalg", "tensor"))
    kind, keys = tensor_type(op.results[1].type), tensor_type(op.operands[1].type)
    rank = len(keys.shape)
    descending, infinity, keyed = (
        op.operands[i].owner.attributes["value"].value for i in (2, 3, 4)
    )
    order = Order(keys.element_type.width, descending=bool(descending), infinity=int(infinity))
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
        tensors = [*map(to_builtin, [op.operands[1], op.operands[0]]), iota.results[0]]
        ordered = create_sort(tensors, rank - 1, order, keyed=1 if keyed else None)
        for old, new in zip(op.results, ordered[1:], strict=True):
            old.replace_all_uses_with(from_builtin(new, old.type))
    op.erase()


#: Op name -> its lowering.
SORTS = {"polyblocks.sorted_rows": Lowering(_replace, _applies)}
