"""A blur of an image in TensorFlow: two convolutions become one loop nest. Compared with XLA."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from polyblocks.tf_polyblocks_compiler import polymage_jit_tf


def blur_x_blur_y(image: tf.Tensor) -> tf.Tensor:
    """Blur along the rows, then along the columns; (3, height, width) -> 4 less of each."""
    kernel = tf.constant([0.0625, 0.25, 0.375, 0.25, 0.0625])
    x = tf.expand_dims(image, -1)
    x = tf.nn.conv2d(x, tf.reshape(kernel, (1, 5, 1, 1)), 1, "VALID")
    x = tf.nn.conv2d(x, tf.reshape(kernel, (5, 1, 1, 1)), 1, "VALID")
    return tf.squeeze(x, -1)


def best_of(function: Callable[[tf.Tensor], tf.Tensor], argument: tf.Tensor, calls: int) -> float:
    """Seconds of the fastest of some calls, after one that compiles."""
    function(argument)
    samples = []
    for _ in range(calls):
        begin = time.perf_counter()
        function(argument)
        samples.append(time.perf_counter() - begin)
    return min(samples)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compile, compare, time; the exit status is 1 if the results differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--height", type=int, default=1080)
    parser.add_argument("--width", type=int, default=1920)
    parser.add_argument("--calls", type=int, default=5)
    args = parser.parse_args(arguments)

    random = np.random.default_rng(0)
    image = tf.constant(random.random((3, args.height, args.width), np.float32))
    compiled = polymage_jit_tf(blur_x_blur_y, runtime_args={"target": "cpu"})
    by_xla = polymage_jit_tf(blur_x_blur_y, execution_backend="xla")
    difference = float(tf.reduce_max(tf.abs(compiled(image) - by_xla(image))))
    print(f"largest difference: {difference:.1e}")
    for name, function in (("polyblocks", compiled), ("xla", by_xla)):
        print(f"{name}: {best_of(function, image, args.calls) * 1e3:.3f} ms")
    print(compiled.polyblocks_report())
    return 0 if difference < 1e-5 else 1


if __name__ == "__main__":
    sys.exit(main())
