"""PyTorch frontend of PolyBlocks.

The decorators are imported when they are asked for: listing plugins loads this package, and
should not wait for PyTorch and Dynamo.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polyblocks

if getattr(polyblocks, "__distribution__", "") != "polyblocks-compiler":
    where = polyblocks.__file__ or list(polyblocks.__path__)
    raise ImportError(
        f"{__name__} needs polyblocks-compiler, but {where} is not part of it; pip uninstall "
        "polyblocks, then install polyblocks-compiler with --force-reinstall --no-deps"
    )

from polyblocks.frontends.framework_version import check_framework

check_framework("polyblocks-torch", "torch")

if TYPE_CHECKING:
    from polyblocks_torch.api import polyblocks_jit_torch, polymage_jit_torch

__all__ = ["polyblocks_jit_torch", "polymage_jit_torch"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from polyblocks_torch import api

        return getattr(api, name)
    raise AttributeError(f"module 'polyblocks_torch' has no attribute '{name}'")
