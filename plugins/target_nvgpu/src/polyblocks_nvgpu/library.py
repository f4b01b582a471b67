"""``emit_library``: a program as a shared object for NVIDIA's GPUs, through the CUDA driver."""

from __future__ import annotations

from importlib.resources import files

from polyblocks.c_library.device.vendor import Vendor

VENDOR = Vendor(
    name="CUDA driver",
    stream="CUstream",
    read_source=lambda: (files("polyblocks_nvgpu") / "library.h").read_bytes(),
)
