"""``emit_library``: a program as a shared object for AMD's GPUs, through the HIP runtime."""

from __future__ import annotations

from importlib.resources import files

from polyblocks.c_library.device.vendor import Vendor

VENDOR = Vendor(
    name="HIP runtime",
    stream="hipStream_t",
    read_source=lambda: (files("polyblocks_amdgpu") / "library.h").read_bytes(),
)
