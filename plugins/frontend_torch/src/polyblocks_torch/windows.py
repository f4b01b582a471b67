"""Convolution with groups in any number of dimensions: an op, and its lowering.

torch-mlir has it up to two dimensions. One ``linalg.generic``, here of one dimension::

    %r = linalg.generic {maps = [(n, g, o, x, i, k) -> (n, g, i, x * stride + k * dilation),
                                 (n, g, o, x, i, k) -> (g, o, i, k),
                                 (n, g, o, x, i, k) -> (n, g, o, x)],
                         iterators = [parallel, parallel, parallel, parallel,
                                      reduction, reduction]}
        ins(%image, %weight) outs(%zeros) {
      ^bb0(%a: f32, %b: f32, %s: f32):
        %p = arith.mulf %a, %b : f32
        %t = arith.addf %s, %p : f32
        linalg.yield %t : f32 }
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from polyblocks import mlir
from polyblocks_torch.torch_dialect import Lowering, builtin_type, from_builtin, to_builtin

_library = torch.library.Library("polyblocks", "FRAGMENT")
_library.define("windows(Tensor image, Tensor weight, int[] stride, int[] dilation) -> Tensor")


def _eager(image: Tensor, weight: Tensor, stride: Sequence[int], dilation: Sequence[int]) -> Tensor:
    groups = weight.shape[0]
    found = torch.convolution(
        image.flatten(1, 2),
        weight.flatten(0, 1),
        None,
        stride,
        [0] * len(stride),
        dilation,
        False,
        [0] * len(stride),
        groups,
    )
    return found.unflatten(1, (groups, -1))


def _shape(image: Tensor, weight: Tensor, stride: Sequence[int], dilation: Sequence[int]) -> Tensor:
    counts = [
        (extent - gap * (taps - 1) - 1) // step + 1
        for extent, taps, step, gap in zip(
            image.shape[3:], weight.shape[3:], stride, dilation, strict=True
        )
    ]
    return image.new_empty([image.shape[0], *weight.shape[:2], *counts])


_library.impl("windows", _eager, "CompositeExplicitAutograd")
_library.impl("windows", _shape, "Meta")


def windows(
    image: Tensor, weight: Tensor, stride: Sequence[int], dilation: Sequence[int]
) -> Tensor:
    """Products of windows of images with weights, summed up.

    Args:
        image: [images, groups, inner, ...], with its padding; of float32 or float64.
        weight: [groups, outer, inner, ...]; of the same dtype.
        stride: elements from one window to the next, per dimension.
        dilation: elements from one tap of a window to the next.

    Returns:
        [images, groups, outer, ...].
    """
    result: Tensor = torch.ops.polyblocks.windows(image, weight, list(stride), list(dilation))
    return result


def _replace(op: Any) -> None:
    ir = mlir.ir
    linalg, tensor, arith = (mlir.dialect(name) for name in ("linalg", "tensor", "arith"))
    kind = builtin_type(op.results[0].type)
    assert kind is not None
    element, dims = kind.element_type, len(kind.shape) - 3
    stride, dilation = (_numbers(operand) for operand in list(op.operands)[2:4])
    image, group, outer, *rest = (ir.AffineDimExpr.get(d) for d in range(4 + 2 * dims))
    places, inner, taps = rest[:dims], rest[dims], rest[dims + 1 :]
    read = [
        x * step + k * gap for x, k, step, gap in zip(places, taps, stride, dilation, strict=True)
    ]
    indices = [
        [image, group, inner, *read],
        [group, outer, inner, *taps],
        [image, group, outer, *places],
    ]
    loops = ["parallel"] * (3 + dims) + ["reduction"] * (1 + dims)
    with ir.InsertionPoint(op), op.location:
        zero = arith.ConstantOp(element, ir.FloatAttr.get(element, 0.0)).result
        empty = tensor.EmptyOp(list(kind.shape), element).result
        generic = linalg.GenericOp(
            [kind],
            [to_builtin(operand) for operand in list(op.operands)[:2]],
            [linalg.fill(zero, outs=[empty])],
            ir.ArrayAttr.get(
                [ir.AffineMapAttr.get(ir.AffineMap.get(4 + 2 * dims, 0, i)) for i in indices]
            ),
            ir.ArrayAttr.get(
                [ir.Attribute.parse(f"#linalg.iterator_type<{loop}>") for loop in loops]
            ),
        )
        block = ir.Block.create_at_start(
            generic.regions[0], [element] * 3, arg_locs=[op.location] * 3
        )
        with ir.InsertionPoint(block):
            product = arith.MulFOp(block.arguments[0], block.arguments[1]).result
            linalg.YieldOp([arith.AddFOp(block.arguments[2], product).result])
        op.results[0].replace_all_uses_with(from_builtin(generic.results[0], op.results[0].type))
    op.erase()


def _numbers(value: Any) -> list[int]:
    """The elements of a list of constants."""
    return [
        int(operand.owner.attributes["value"].value) for operand in value.owner.operation.operands
    ]


#: Op name -> its lowering.
WINDOWS = {"polyblocks.windows": Lowering(_replace)}
