"""Tensor metadata -> ArraySpec."""

from __future__ import annotations

from typing import Any

import torch

from polyblocks.errors import UnsupportedError
from polyblocks.program import DTYPES, ArraySpec

#: PyTorch has few operations on these, and torch-mlir reads some as signed.
_NOT_IMPORTED = ("uint16", "uint32", "uint64")

#: dtype -> its name in a Program.
DTYPE_NAMES: dict[torch.dtype, str] = {
    getattr(torch, name): name for name in DTYPES if name not in _NOT_IMPORTED
}
TORCH_DTYPES: dict[str, torch.dtype] = {name: dtype for dtype, name in DTYPE_NAMES.items()}


#: PyTorch's name of the devices that programs for GPUs take, whichever plugin made them.
ACCELERATOR = "cuda"


def spec_of(value: torch.Tensor) -> ArraySpec:
    """Shape, dtype and strides of a tensor, real or fake.

    Raises:
        UnsupportedError: not strided, a dtype that a Program cannot hold, or a symbolic extent.
    """
    if value.layout != torch.strided:
        raise UnsupportedError(f"a tensor of layout {str(value.layout).removeprefix('torch.')}")
    name = DTYPE_NAMES.get(value.dtype)
    if name is None:
        raise UnsupportedError(f"a tensor of dtype {str(value.dtype).removeprefix('torch.')}")
    shape, strides = tuple(value.shape), tuple(value.stride())
    if not all(type(n) is int for n in (*shape, *strides)):
        raise UnsupportedError("a tensor of symbolic shape")
    return ArraySpec(shape, name, strides)


def problem_with(value: Any) -> str | None:
    """Why a value cannot be an array of a Program, or None if it can."""
    if not isinstance(value, torch.Tensor):
        return f"a value of type {type(value).__name__}"
    if value.device.type not in ("cpu", ACCELERATOR):
        return f"a tensor on {value.device}"
    try:
        spec_of(value)
    except UnsupportedError as error:
        return error.reason
    return None


def memory_key(value: Any) -> int | None:
    """Equal for tensors that share memory, however they read it; None for what has none."""
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        return None
    try:
        return int(value.untyped_storage()._cdata)
    except NotImplementedError:  # wrappers, as those of torch.func, show no memory
        return None


def storage_key(value: Any) -> int | None:
    """As :func:`memory_key`; None also for lazy conjugates and negations of what is in memory."""
    if isinstance(value, torch.Tensor) and (value.is_conj() or value.is_neg()):
        return None
    return memory_key(value)


def is_dense(spec: ArraySpec) -> bool:
    """Whether every element has its own place and no place is left out."""
    step = 1
    dims = sorted(zip(spec.strides, spec.shape, strict=True))
    for stride, extent in dims:
        if extent == 1:
            continue
        if stride != step:
            return False
        step *= extent
    return spec.numel > 0
