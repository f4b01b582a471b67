"""JAX frontend of PolyBlocks.

The decorators are imported when they are asked for: listing plugins loads this package, and should
not wait for JAX.
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

check_framework("polyblocks-jax", "jax")

if TYPE_CHECKING:
    from polyblocks_jax.api import polyblocks_jit_jax, polymage_jit_jax
    from polyblocks_jax.transforms.constants import CapturedConstantWarning

_PUBLIC = {
    "CapturedConstantWarning": "transforms.constants",
    "polyblocks_jit_jax": "api",
    "polymage_jit_jax": "api",
}

__all__ = ["CapturedConstantWarning", "polyblocks_jit_jax", "polymage_jit_jax"]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        import importlib

        return getattr(importlib.import_module(f"polyblocks_jax.{_PUBLIC[name]}"), name)
    raise AttributeError(f"module 'polyblocks_jax' has no attribute '{name}'")
