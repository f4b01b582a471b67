"""The frontend's ArrayInterface: how tensors are read and made."""

from __future__ import annotations

import torch

from polyblocks.program import ArraySpec
from polyblocks_torch.launcher import POOLED_BYTES, pooled_tensor
from polyblocks_torch.specs import TORCH_DTYPES, spec_of


class TorchArrays:
    """Tensors as arrays, for the hook ``array_interface``."""

    def spec(self, array: torch.Tensor) -> ArraySpec:
        """Shape, dtype and strides."""
        return spec_of(array)

    def address(self, array: torch.Tensor) -> int:
        """Where the first element is."""
        return int(array.data_ptr())

    def empty(self, spec: ArraySpec) -> torch.Tensor:
        """A new tensor of this layout with any content."""
        dtype = TORCH_DTYPES[spec.dtype]
        if spec.nbytes >= POOLED_BYTES:
            return pooled_tensor(spec.nbytes, spec.shape, spec.strides, dtype)
        return torch.empty_strided(spec.shape, spec.strides, dtype=dtype)
