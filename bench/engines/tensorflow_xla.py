"""TensorFlow with XLA."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from bench.engines import Prepared, joined, written_in

OUTPUTS = {"tf-xla": "allocated by TensorFlow at each call"}
DISTRIBUTIONS = {"tf-xla": ("tensorflow-cpu",)}


def warm_up(name: str, threads: int) -> None:
    """Set the threads; compile something small."""
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.function(lambda x: x + 1, jit_compile=True)(tf.ones(4)).numpy()


def prepare(name: str, program: str, inputs: tuple[np.ndarray[Any, Any], ...]) -> Prepared:
    """The function under ``tf.function(jit_compile=True)``, which returns when it has run."""
    arguments = [tf.constant(x) for x in inputs]
    compiled = tf.function(written_in("in_tensorflow", program), jit_compile=True)
    return Prepared(lambda: compiled(*arguments), joined)
