"""dtypes of TensorFlow and of a Program."""

from __future__ import annotations

import tensorflow as tf

from polyblocks.program import DTYPES, ArraySpec

#: dtype -> its name in a Program.
DTYPE_NAMES: dict[tf.DType, str] = {getattr(tf, name): name for name in DTYPES}
TF_DTYPES: dict[str, tf.DType] = {name: dtype for dtype, name in DTYPE_NAMES.items()}


def spec_of(shape: tuple[int, ...], dtype: tf.DType) -> ArraySpec | None:
    """The dense row-major spec; None if no Program can hold such an array."""
    name = DTYPE_NAMES.get(dtype)
    return None if name is None else ArraySpec.contiguous(shape, name)


def dtype_list() -> str:
    """The supported dtypes, for messages."""
    return ", ".join(sorted(TF_DTYPES))
