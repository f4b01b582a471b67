"""The decorators for PyTorch, under the import path of the published documentation."""

from __future__ import annotations

try:
    from polyblocks_torch import polyblocks_jit_torch, polymage_jit_torch
except ModuleNotFoundError as error:
    if error.name != "polyblocks_torch":
        raise
    raise ImportError(
        "the PyTorch frontend is not installed; pip install polyblocks-torch"
    ) from None

__all__ = ["polyblocks_jit_torch", "polymage_jit_torch"]
