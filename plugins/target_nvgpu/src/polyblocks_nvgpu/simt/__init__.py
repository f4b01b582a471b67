"""Semantics of the ops of NVIDIA's kernels, for the simulator."""

from polyblocks_nvgpu.simt.operations import SEMANTICS

__all__ = ["SEMANTICS"]
