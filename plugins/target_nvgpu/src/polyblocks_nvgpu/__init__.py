"""NVIDIA GPU target of PolyBlocks."""

from __future__ import annotations

import polyblocks

if getattr(polyblocks, "__distribution__", "") != "polyblocks-compiler":
    where = polyblocks.__file__ or list(polyblocks.__path__)
    raise ImportError(
        f"{__name__} needs polyblocks-compiler, but {where} is not part of it; pip uninstall "
        "polyblocks, then install polyblocks-compiler with --force-reinstall --no-deps"
    )
