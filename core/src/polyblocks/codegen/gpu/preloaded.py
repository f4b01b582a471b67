"""Modules that compiling for any GPU imports besides those of every target's compilation does."""

from __future__ import annotations

#: For the hook ``preload`` of targets: each forked compilation would import them again.
MODULES = (
    "polyblocks.affine.gpu.neighbours",
    "polyblocks.affine.gpu.scheduled",
    "polyblocks.affine.gpu.split_k",
    "polyblocks.affine.gpu.windows",
    "polyblocks.codegen.gpu.emission.function",
    "polyblocks.codegen.gpu.emission.region",
    "polyblocks.passes.map.products_together",
)
