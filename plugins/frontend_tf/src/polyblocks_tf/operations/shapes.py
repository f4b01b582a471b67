"""Operations on shapes that are static here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf


def ensured(op: Any, inputs: list[tf.Tensor]) -> Sequence[tf.Tensor] | None:
    """``EnsureShape``: nothing is left to check where the shape is known and fits."""
    (tensor,) = inputs
    wanted = tf.TensorShape(op.get_attr("shape"))
    if not tensor.shape.is_fully_defined() or not wanted.is_compatible_with(tensor.shape):
        return None
    return [tensor]
