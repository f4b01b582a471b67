"""Tensors on a GPU: which target takes them, on which stream, and how new ones are made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from polyblocks.options import CompileOptions
from polyblocks.registry.registry import get_registry
from polyblocks_torch.specs import ACCELERATOR

#: ``DLDeviceType`` of the memory of PyTorch's two kinds of GPU builds.
_CUDA, _ROCM = 2, 10


def kind() -> int:
    """The ``DLDeviceType`` of this PyTorch's GPUs."""
    return _ROCM if torch.version.hip is not None else _CUDA


def takes(options: CompileOptions, device: torch.device) -> bool:
    """Whether programs for the target take tensors of a device where they are."""
    if device.type != ACCELERATOR or options.simulate:
        return False
    return kind() in get_registry().target(options.target).hook.device_kinds()


def current_stream() -> Callable[[int], int]:
    """A function of a device's number that gives the handle of its current stream."""
    stream: Callable[[int], int] = torch._C._cuda_getCurrentRawStream
    return stream


def allocator(device: torch.device) -> Callable[..., torch.Tensor]:
    """``allocate(shape, strides, dtype)`` on a device, from PyTorch's own memory."""
    # Not in PyTorch's stubs.
    from torch._C._dynamo.guards import _empty_strided_cuda  # type: ignore[attr-defined]

    current: Callable[[], int] = torch._C._cuda_getDevice
    number = device.index

    def allocate(shape: Any, strides: Any, dtype: torch.dtype) -> torch.Tensor:
        if current() == number:  # the quick one knows only the current device
            return _empty_strided_cuda(shape, strides, dtype)
        return torch.empty_strided(shape, strides, dtype=dtype, device=device)

    return allocate
