"""PyTorch frontend of PolyBlocks."""

from polyblocks_torch.api import polyblocks_jit_torch, polymage_jit_torch

__all__ = ["polyblocks_jit_torch", "polymage_jit_torch"]
