"""The decorators for JAX, under the import path of the published documentation."""

from __future__ import annotations

try:
    from polyblocks_jax import polyblocks_jit_jax, polymage_jit_jax
except ModuleNotFoundError as error:
    if error.name != "polyblocks_jax":
        raise
    raise ImportError("the JAX frontend is not installed; pip install polyblocks-jax") from None

__all__ = ["polyblocks_jit_jax", "polymage_jit_jax"]
