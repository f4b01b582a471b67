"""The ArrayInterface of PyTorch: tensors for the generic launch path."""

from __future__ import annotations

from typing import Any

import torch

from polyblocks.errors import InputError, UnsupportedError
from polyblocks.program import ArraySpec
from polyblocks.runtime.arrays import HOST, ArrayInterface, Device
from polyblocks_torch.launcher import POOLED_BYTES, pooled_tensor
from polyblocks_torch.specs import DTYPE_NAMES, TORCH_DTYPES, spec_of


class TorchArrays(ArrayInterface):
    """Strided tensors. Those that require gradients are taken as they are; none are recorded."""

    def is_array(self, value: Any) -> bool:
        """Whether ``value`` is a tensor."""
        return isinstance(value, torch.Tensor)

    def describe(self, array: torch.Tensor) -> ArraySpec:
        """Shape, dtype and strides of a tensor; see the base class."""
        if array.layout != torch.strided:
            raise InputError(f"the tensor's layout is {array.layout}; use .to_dense()")
        if array.dtype not in DTYPE_NAMES:
            names = ", ".join(DTYPE_NAMES.values())
            dtype = str(array.dtype).removeprefix("torch.")
            raise InputError(f"dtype {dtype} is none of {names}; use .to()")
        if array.is_conj() or array.is_neg():
            raise InputError("the tensor is a lazy conjugate or negation; use .resolve_conj()")
        try:
            return spec_of(array)
        except UnsupportedError as error:
            raise InputError(error.reason) from None

    def pointer(self, array: torch.Tensor) -> int:
        """The address of the first element."""
        return int(array.data_ptr())

    def device(self, array: torch.Tensor) -> Device:
        """Where the tensor lies."""
        try:
            kind, number = array.detach().__dlpack_device__()
        except (BufferError, RuntimeError, ValueError):
            raise InputError(f"a tensor on {array.device} has no memory; use .cpu()") from None
        return Device(int(kind), int(number))

    def is_writable(self, array: torch.Tensor) -> bool:
        """Whether it may be updated: not while autograd records it."""
        return not (array.requires_grad and torch.is_grad_enabled())

    def empty(self, spec: ArraySpec, device: Device) -> torch.Tensor:
        """A new tensor; large ones are on pooled memory."""
        _expect_host(device)
        dtype = TORCH_DTYPES[spec.dtype]
        if spec.nbytes >= POOLED_BYTES:
            return pooled_tensor(spec.nbytes, spec.shape, spec.strides, dtype)
        return torch.empty_strided(spec.shape, spec.strides, dtype=dtype)

    def transfer(self, array: torch.Tensor, device: Device) -> torch.Tensor:
        """The tensor itself if it is on the host, else a copy there."""
        _expect_host(device)
        return array.cpu()


def _expect_host(device: Device) -> None:
    if device != HOST:
        raise InputError(f"this frontend makes tensors on the host, not on device {tuple(device)}")
