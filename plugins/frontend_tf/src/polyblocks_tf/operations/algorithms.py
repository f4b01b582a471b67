"""Calls of the core's algorithms, which XLA's bridge has other ones for, or calls of a library.

As a check (:mod:`polyblocks_tf.operations.checks`), a call passes through the bridge as a barrier:
of the operands, of an array of zeros for each result, and of the bytes of a text that begins with
:data:`MARK`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops

#: Prefix of the name of an algorithm.
MARK = "polyblocks.algorithm:"


def call(
    name: str, operands: Sequence[tf.Tensor], results: Sequence[tuple[Sequence[int], tf.DType]]
) -> list[tf.Tensor]:
    """The results of an algorithm.

    Args:
        name: of :data:`polyblocks.algorithms.expand.ALGORITHMS`.
        operands: arrays of static shapes.
        results: shape and element type of each result.
    """
    text = tf.constant(np.frombuffer(f"{MARK}{name}".encode(), np.uint8))
    zeros = [tf.zeros(shape, dtype) for shape, dtype in results]
    outputs = gen_xla_ops.xla_optimization_barrier(input=[*operands, *zeros, text])
    made = list(outputs[len(operands) : -1])
    for tensor, (shape, _) in zip(made, results, strict=True):
        tensor.set_shape(shape)
    return made
