"""Modules that compiling for any GPU imports besides those of every target's compilation does."""

from __future__ import annotations

#: For the hook ``preload`` of targets: each forked compilation would import them again.
MODULES = (
    "polyblocks.codegen.gpu.emission.region",
    "polyblocks.codegen.gpu.mapping.scheduled",
    "polyblocks.codegen.gpu.matrix.parts",
)
