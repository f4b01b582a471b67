"""The decorators for TensorFlow, under the import path of the published documentation."""

from __future__ import annotations

try:
    from polyblocks_tf import polyblocks_jit_tf, polymage_jit_tf
except ModuleNotFoundError as error:
    if error.name not in ("polyblocks_tf", "tensorflow"):
        raise
    what = "frontend" if error.name == "polyblocks_tf" else "package"
    raise ImportError(
        f"the TensorFlow {what} is not installed; pip install polyblocks-tf"
    ) from None

__all__ = ["polyblocks_jit_tf", "polymage_jit_tf"]
