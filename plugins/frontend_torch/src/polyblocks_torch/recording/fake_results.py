"""Results of plain operations on fake tensors, without asking the mode.

A fake tensor mode flattens and hashes the operands, looks into a cache, compares devices and asks
for rules in Python, for each operation. Of those that decompositions are made of, the result is
known at once: a view is what PyTorch's kernel makes of the operand, and what is computed element by
element from contiguous tensors is contiguous. The mode remains to be asked about everything else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, in_kernel_invocation_manager

_aten = torch.ops.aten

#: Their kernels compute sizes and strides, in C++.
_VIEWS = frozenset(
    {
        _aten.alias.default, _aten.expand.default, _aten.permute.default, _aten.select.int,
        _aten.slice.Tensor, _aten.squeeze.dim, _aten.squeeze.dims, _aten.transpose.int,
        _aten.unsqueeze.default, _aten.view.default,
    }
)  # fmt: skip

#: Element-wise operations whose result is of the type of their operands, floating-point numbers.
_FLOATS = frozenset(
    {
        _aten.abs.default, _aten.ceil.default, _aten.cos.default, _aten.div.Tensor,
        _aten.erf.default, _aten.exp.default, _aten.floor.default, _aten.log.default,
        _aten.neg.default, _aten.reciprocal.default, _aten.rsqrt.default, _aten.sigmoid.default,
        _aten.sin.default, _aten.sqrt.default, _aten.tanh.default, _aten.trunc.default,
    }
)  # fmt: skip

#: Of that of their operands, integers or floating-point numbers.
_ARITHMETIC = frozenset(
    {
        _aten.add.Tensor, _aten.clamp.default, _aten.maximum.default, _aten.minimum.default,
        _aten.mul.Tensor, _aten.sub.Tensor,
    }
)  # fmt: skip

#: Of that of their operands, integers or booleans.
_BITS = frozenset({_aten.bitwise_and.Tensor, _aten.bitwise_or.Tensor, _aten.bitwise_xor.Tensor})

#: Whose result is of booleans.
_QUESTIONS = frozenset(
    {
        _aten.eq.Scalar, _aten.eq.Tensor, _aten.ge.Scalar, _aten.ge.Tensor, _aten.gt.Scalar,
        _aten.gt.Tensor, _aten.isnan.default, _aten.le.Scalar, _aten.le.Tensor,
        _aten.logical_and.default, _aten.logical_not.default, _aten.logical_or.default,
        _aten.lt.Scalar, _aten.lt.Tensor, _aten.ne.Scalar, _aten.ne.Tensor,
    }
)  # fmt: skip

_ELEMENTWISE = _FLOATS | _ARITHMETIC | _BITS | _QUESTIONS | {_aten.where.self}


def result_of(
    mode: FakeTensorMode, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> FakeTensor | None:
    """The result of an operation; None where the mode decides.

    Args:
        mode: of the operands; the only one that is active.
        func: an ATen operation.
        args: its arguments.
        kwargs: those by name.
    """
    if kwargs:
        converts = func is _aten._to_copy.default and kwargs.keys() == {"dtype"}
        if not converts or not _is_plain(args[0], mode) or not args[0].is_contiguous():
            return None
        return _contiguous(mode, args[0].shape, kwargs["dtype"], args[0].device)
    if func in _VIEWS:
        viewed = args[0]
        if not _is_plain(viewed, mode):
            return None
        with in_kernel_invocation_manager(mode):
            return FakeTensor(mode, func(*args), viewed.fake_device)
    if func in _ELEMENTWISE:
        tensors = [value for value in args if isinstance(value, torch.Tensor)]
        numbers = [value for value in args if not isinstance(value, torch.Tensor)]
        if not _are_plain(tensors, mode) or not all(t.is_contiguous() for t in tensors):
            return None
        dtype = _elementwise_dtype(func, tensors, numbers)
        shape = _broadcast([t.shape for t in tensors])
    elif func is _aten.cat.default:
        tensors = args[0]
        if not _are_plain(tensors, mode):
            return None
        dtype = tensors[0].dtype if len({t.dtype for t in tensors}) == 1 else None
        shape = _joined(tensors, *args[1:])
    else:
        return None
    if dtype is None or shape is None:
        return None
    return _contiguous(mode, shape, dtype, tensors[0].device)


def _contiguous(
    mode: FakeTensorMode, shape: Sequence[int], dtype: torch.dtype, device: torch.device
) -> FakeTensor:
    with torch._C._DisableTorchDispatch():
        return FakeTensor(mode, torch.empty(shape, dtype=dtype, device="meta"), device)


def _is_plain(value: Any, mode: FakeTensorMode) -> bool:
    """Whether a value is a fake tensor of the mode without known numbers."""
    return type(value) is FakeTensor and value.fake_mode is mode and value.constant is None


def _are_plain(values: Sequence[Any], mode: FakeTensorMode) -> bool:
    """Whether that holds for all of several, which are on one device."""
    return bool(values) and all(
        _is_plain(value, mode) and value.device == values[0].device for value in values
    )


def _elementwise_dtype(
    func: Any, tensors: Sequence[torch.Tensor], numbers: Sequence[Any]
) -> torch.dtype | None:
    """The type of the result, where no operand is converted before."""
    if func in _QUESTIONS:
        return None if any(t.is_complex() for t in tensors) else torch.bool
    if func is _aten.where.self:
        if len(tensors) != 3 or tensors[0].dtype != torch.bool:
            return None
        tensors = tensors[1:]
    dtype = tensors[0].dtype
    if any(t.dtype != dtype for t in tensors):
        return None
    if func is _aten.where.self:
        return dtype
    if func in _BITS:
        return dtype if not numbers and not (dtype.is_floating_point or dtype.is_complex) else None
    if dtype.is_floating_point:
        kinds: tuple[type, ...] = (int, float, type(None))
    elif func in _ARITHMETIC and not dtype.is_complex and dtype != torch.bool:
        kinds = (int, type(None))
    else:
        return None
    return dtype if all(type(number) in kinds for number in numbers) else None


def _broadcast(shapes: Sequence[Sequence[int]]) -> Sequence[int] | None:
    """The shape of what is computed from tensors of these; None if they do not fit."""
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return first
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    extents = [set(column) - {1} for column in zip(*padded, strict=True)]
    if any(len(found) > 1 for found in extents):
        return None
    return [found.pop() if found else 1 for found in extents]


def _joined(tensors: Sequence[torch.Tensor], dim: int = 0) -> Sequence[int] | None:
    """The shape of concatenated tensors; None if it is not contiguous or they do not fit."""
    shape = list(tensors[0].shape)
    rank = len(shape)
    if not 0 < rank < 6 or not -rank <= dim < rank:
        return None
    # Four and five dimensions are stored with the channels last if those of all operands are.
    if rank > 3 and all(t.stride(1) <= t.stride(-1) for t in tensors):
        return None
    shape[dim] = 0
    for tensor in tensors:
        extents = list(tensor.shape)
        if len(extents) != rank or 0 in extents:
            return None
        total, extents[dim], shape[dim] = shape[dim] + extents[dim], 0, 0
        if extents != shape:
            return None
        shape[dim] = total
    return shape
