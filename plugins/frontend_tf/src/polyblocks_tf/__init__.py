"""TensorFlow frontend of PolyBlocks.

The decorators are imported when they are asked for: listing plugins loads this package, and
should not wait for TensorFlow.
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

check_framework("polyblocks-tf", "tensorflow", builds=("tensorflow-cpu",))

if TYPE_CHECKING:
    from polyblocks_tf.api import polyblocks_jit_tf, polymage_jit_tf

__all__ = ["polyblocks_jit_tf", "polymage_jit_tf"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from polyblocks_tf import api

        return getattr(api, name)
    raise AttributeError(f"module 'polyblocks_tf' has no attribute '{name}'")
