"""Abstract values of JAX -> ArraySpec."""

from __future__ import annotations

from typing import Any

import jax

from polyblocks.errors import UnsupportedError
from polyblocks.program import DTYPES, ArraySpec


def spec_of(aval: Any) -> ArraySpec:
    """Shape and dtype of what lies in memory; JAX's arrays are dense and row-major on a CPU.

    Raises:
        UnsupportedError: a dtype that a Program cannot hold, or a symbolic extent.
    """
    aval = physical(aval)
    name = memory_dtype(aval)
    if name not in DTYPES:
        raise UnsupportedError(f"an array of dtype {name}")
    if not all(isinstance(extent, int) for extent in aval.shape):
        raise UnsupportedError("an array of symbolic shape")
    return ArraySpec.contiguous(tuple(aval.shape), name)


def memory_dtype(aval: Any) -> str:
    """The dtype of the elements as they lie in memory: float0 is JAX's word for no information."""
    return "bool" if aval.dtype == jax.dtypes.float0 else str(aval.dtype)


def physical(aval: Any) -> Any:
    """The data of an array of random keys; other arrays as they are."""
    if jax.dtypes.issubdtype(aval.dtype, jax.dtypes.prng_key):
        return jax.eval_shape(jax.random.key_data, jax.ShapeDtypeStruct(aval.shape, aval.dtype))
    return aval


def struct_of(aval: Any) -> jax.ShapeDtypeStruct:
    """The aval as what ``jax.jit(f).lower`` takes."""
    weak = bool(getattr(aval, "weak_type", False))
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=weak)


def text_of(aval: Any) -> str:
    """``float32[3,4]``."""
    return f"{aval.dtype}[{','.join(map(str, aval.shape))}]"
