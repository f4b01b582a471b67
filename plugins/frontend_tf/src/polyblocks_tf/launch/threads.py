"""How many threads TensorFlow is set to."""

from __future__ import annotations

import tensorflow as tf


def thread_setting() -> int | None:
    """The intra-op parallelism that TensorFlow is set to, fixed once it runs; None: not set."""
    return tf.config.threading.get_intra_op_parallelism_threads() or None
