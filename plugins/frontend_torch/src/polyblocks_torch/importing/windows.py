"""Convolution with groups in any number of dimensions: an op, and its lowering.

torch-mlir has it up to two dimensions, and does not say which zeros stand for elements that are not
there. One ``linalg.generic``, here of one dimension::

    %z = tensor.insert_slice %image into %zeros [0, 0, 0, low] [...] [1, 1, 1, spread]
    %r = linalg.generic {maps = [(n, g, o, x, i, k) -> (n, g, i, x * stride + k * dilation),
                                 (n, g, o, x, i, k) -> (g, o, i, k),
                                 (n, g, o, x, i, k) -> (n, g, o, x)],
                         iterators = [parallel, parallel, parallel, parallel,
                                      reduction, reduction]}
        ins(%z, %weight) outs(%zeros) {
      ^bb0(%a: f32, %b: f32, %s: f32):
        %p = arith.mulf %a, %b {polyblocks.absent, polyblocks.padded = {...}} : f32
        %t = arith.addf %s, %p : f32
        linalg.yield %t : f32 }
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from polyblocks import mlir
from polyblocks.affine.padding.padded import Padded
from polyblocks.attributes import ABSENT_ATTRIBUTE
from polyblocks_torch.importing.torch_dialect import Lowering, from_builtin, tensor_type, to_builtin

_library = torch.library.Library("polyblocks", "FRAGMENT")
_library.define(
    "windows(Tensor image, Tensor weight, int[] stride, int[] dilation, int[] spread, int[] low,"
    " int[] high, bool absent) -> Tensor"
)


@dataclass(frozen=True)
class Zeros:
    """Zeros that a convolution puts between and around the elements of an image.

    Attributes:
        spread: from one element to the next, per dimension.
        low, high: in front of the first element, and behind the last one.
        absent: whether they stand for elements that are not there, whatever they meet; else
            products with them may be left out or not.
    """

    spread: Sequence[int]
    low: Sequence[int]
    high: Sequence[int]
    absent: bool

    def extents(self, image: Sequence[int]) -> list[int]:
        """The sizes of an image with its zeros."""
        return [
            before + (n - 1) * step + 1 + behind
            for n, step, before, behind in zip(image, self.spread, self.low, self.high, strict=True)
        ]

    def padded(self, sizes: Sequence[int]) -> Padded | None:
        """Where elements of [images, groups, inner, ...] are; None without zeros or elements."""
        if not all(sizes) or self.extents(sizes[3:]) == list(sizes[3:]):
            return None
        return Padded((0, 0, 0, *self.low), tuple(sizes), (1, 1, 1, *self.spread))


def _eager(
    image: Tensor,
    weight: Tensor,
    stride: Sequence[int],
    dilation: Sequence[int],
    spread: Sequence[int],
    low: Sequence[int],
    high: Sequence[int],
    absent: bool,
) -> Tensor:
    zeros = Zeros(spread, low, high, absent)
    groups, wide = weight.shape[0], _wide(image.dtype)
    whole = image.new_zeros([*image.shape[:3], *zeros.extents(image.shape[3:])], dtype=wide)
    places = [slice(None)] * 3 + [
        slice(before, before + (n - 1) * step + 1, step)
        for n, step, before in zip(image.shape[3:], spread, low, strict=True)
    ]
    whole[tuple(places)] = image.to(wide)
    if absent:
        there = torch.zeros(whole.shape[3:], dtype=torch.bool, device=image.device)
        there[tuple(places[3:])] = True
        return _of_what_is_there(whole, there, weight.to(wide), stride, dilation)
    found = torch.convolution(
        whole.flatten(1, 2),
        weight.flatten(0, 1).to(wide),
        None,
        stride,
        [0] * len(stride),
        dilation,
        False,
        [0] * len(stride),
        groups,
    )
    return found.unflatten(1, (groups, -1))


def _of_what_is_there(
    image: Tensor, there: Tensor, weight: Tensor, stride: Sequence[int], dilation: Sequence[int]
) -> Tensor:
    """Sums over taps: zeros that stand for nothing do not meet a NaN or an infinity."""
    reach = [gap * (n - 1) for n, gap in zip(weight.shape[3:], dilation, strict=True)]
    found: Tensor | None = None
    whole: list[Any] = [slice(None)] * 3
    for tap in itertools.product(*map(range, weight.shape[3:])):
        places = [
            slice(at * gap, extent - margin + at * gap, step)
            for at, gap, extent, margin, step in zip(
                tap, dilation, there.shape, reach, stride, strict=True
            )
        ]
        part = image[(*whole, *places)]
        # [images, groups, inner, ...] and [groups, outer, inner].
        terms = torch.einsum("ngi...,goi->ngo...", part, weight[(*whole, *tap)])
        terms = torch.where(there[tuple(places)], terms, 0)
        found = terms if found is None else found + terms
    assert found is not None
    return found.contiguous()


def _shape(
    image: Tensor,
    weight: Tensor,
    stride: Sequence[int],
    dilation: Sequence[int],
    spread: Sequence[int],
    low: Sequence[int],
    high: Sequence[int],
    absent: bool,
) -> Tensor:
    extents = Zeros(spread, low, high, absent).extents(image.shape[3:])
    counts = [
        (extent - gap * (taps - 1) - 1) // step + 1
        for extent, taps, step, gap in zip(extents, weight.shape[3:], stride, dilation, strict=True)
    ]
    shape = [image.shape[0], *weight.shape[:2], *counts]
    return image.new_empty(shape, dtype=_wide(image.dtype))


_library.impl("windows", _eager, "CompositeExplicitAutograd")
_library.impl("windows", _shape, "Meta")


def _wide(dtype: torch.dtype) -> torch.dtype:
    """The type of sums."""
    return torch.promote_types(dtype, torch.float32) if dtype.is_floating_point else dtype


def windows(
    image: Tensor, weight: Tensor, stride: Sequence[int], dilation: Sequence[int], zeros: Zeros
) -> Tensor:
    """Products of windows of images with weights, summed up.

    Args:
        image: [images, groups, inner, ...], of integers or floating-point numbers.
        weight: [groups, outer, inner, ...]; of the same dtype.
        stride: elements from one window to the next, per dimension.
        dilation: elements from one tap of a window to the next.
        zeros: what is put between and around the image's elements first.

    Returns:
        [images, groups, outer, ...], of float32 where the operands are of 16 bits.
    """
    result: Tensor = torch.ops.polyblocks.windows(
        image,
        weight,
        list(stride),
        list(dilation),
        list(zeros.spread),
        list(zeros.low),
        list(zeros.high),
        zeros.absent,
    )
    return result


def _replace(op: Any) -> None:
    ir = mlir.ir
    linalg, tensor = (mlir.dialect(name) for name in ("linalg", "tensor"))
    kind = tensor_type(op.results[0].type)
    element, dims = kind.element_type, len(kind.shape) - 3
    stride, dilation, spread, low, high = (_numbers(v) for v in list(op.operands)[2:7])
    zeros = Zeros(spread, low, high, _is_true(op.operands[7]))
    sizes = list(tensor_type(op.operands[0].type).shape)
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
    # Reports name the operation that the user knows.
    named = ir.NameLoc(op.location) if isinstance(op.location, ir.NameLoc) else None
    location = ir.Location.name("aten.convolution.default", named and named.child_loc)
    with ir.InsertionPoint(op), location:
        generic = linalg.GenericOp(
            [kind],
            [_with_zeros(to_builtin(op.operands[0]), zeros), to_builtin(op.operands[1])],
            [_cleared(tensor, linalg, list(kind.shape), element)],
            ir.ArrayAttr.get(
                [ir.AffineMapAttr.get(ir.AffineMap.get(4 + 2 * dims, 0, i)) for i in indices]
            ),
            ir.ArrayAttr.get(
                [ir.Attribute.parse(f"#linalg.iterator_type<{loop}>") for loop in loops]
            ),
        )
        types = [ir.RankedTensorType(v.type).element_type for v in list(generic.operands)[:2]]
        block = ir.Block.create_at_start(
            generic.regions[0], [*types, element], arg_locs=[location] * 3
        )
        with ir.InsertionPoint(block):
            first, second, total = block.arguments
            linalg.YieldOp([_step(first, second, total, zeros, sizes)])
        op.results[0].replace_all_uses_with(from_builtin(generic.results[0], op.results[0].type))
    op.erase()


def _cleared(tensor: Any, linalg: Any, shape: list[int], element: Any) -> Any:
    """A tensor of zeros."""
    ir, arith = mlir.ir, mlir.dialect("arith")
    integer = isinstance(element, ir.IntegerType)
    number = ir.IntegerAttr.get(element, 0) if integer else ir.FloatAttr.get(element, 0.0)
    zero = arith.ConstantOp(element, number).result
    return linalg.fill(zero, outs=[tensor.EmptyOp(shape, element).result])


def _with_zeros(image: Any, zeros: Zeros) -> Any:
    """An image with zeros between and around its elements."""
    ir = mlir.ir
    linalg, tensor = (mlir.dialect(name) for name in ("linalg", "tensor"))
    kind = ir.RankedTensorType(image.type)
    fixed, sizes = list(kind.shape)[:3], list(kind.shape)[3:]
    extents = zeros.extents(sizes)
    if extents == sizes:
        return image
    whole = _cleared(tensor, linalg, [*fixed, *extents], kind.element_type)
    return tensor.InsertSliceOp(
        image,
        whole,
        [],
        [],
        [],
        [0, 0, 0, *zeros.low],
        [*fixed, *sizes],
        [1, 1, 1, *zeros.spread],
    ).result


def _step(first: Any, second: Any, total: Any, zeros: Zeros, sizes: Sequence[int]) -> Any:
    """A sum with a product of two numbers, the first one of an image of these sizes."""
    arith = mlir.dialect("arith")
    padded = zeros.padded(sizes)
    if isinstance(total.type, mlir.ir.IntegerType):
        whole = arith.MulIOp(first, second)
        if padded is not None:
            padded.mark(whole.operation)
        return arith.AddIOp(total, whole.result).result
    factors = [
        v if v.type == total.type else arith.ExtFOp(total.type, v).result for v in (first, second)
    ]
    product = arith.MulFOp(*factors)
    if padded is not None:
        padded.mark(product.operation)
    if zeros.absent:
        product.operation.attributes[ABSENT_ATTRIBUTE] = mlir.ir.UnitAttr.get()
    return arith.AddFOp(total, product.result).result


def _is_true(value: Any) -> bool:
    """Whether a constant is true."""
    return bool(mlir.ir.IntegerAttr(value.owner.attributes["value"]).value)


def _numbers(value: Any) -> list[int]:
    """The elements of a list of constants."""
    return [
        int(operand.owner.attributes["value"].value) for operand in value.owner.operation.operands
    ]


#: Op name -> its lowering.
WINDOWS = {"polyblocks.windows": Lowering(_replace)}
