"""Stages S4 and S5 as far as GPUs have them in common: from ``gpu.func`` kernels to a launch plan,
LLVM kernels and machine code. Nothing here knows a vendor; a target gives a :class:`~.stage.Chip`.
"""
