"""This compiler behind TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from bench.engines import Prepared, joined, written_in
from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf

OUTPUTS = {
    "polyblocks-tf": "new at each call; from 1 MiB on out of a pool that takes them back"
    " when they are freed"
}
DISTRIBUTIONS = {
    "polyblocks-tf": ("polyblocks-compiler", "polyblocks-tf", "polyblocks-cpu", "tensorflow-cpu")
}


def warm_up(name: str, threads: int) -> None:
    """Set the threads; compile something small."""
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    polyblocks_jit_tf(lambda x: x + 1)(tf.ones(4)).numpy()


def prepare(name: str, program: str, inputs: tuple[np.ndarray[Any, Any], ...]) -> Prepared:
    """The decorated function."""
    arguments = [tf.constant(x) for x in inputs]
    compiled = polyblocks_jit_tf(
        written_in("in_tensorflow", program),
        compile_options={"target": "cpu", "strict_target": True},
    )
    return Prepared(lambda: compiled(*arguments), joined)
