"""The rotation of images in TensorFlow, an operation that its XLA does not compile."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf


def rotate_and_darken(images: tf.Tensor, angle: float) -> tf.Tensor:
    """Rotate (batch, height, width, channels) about the centre, then dim the borders."""
    _, height, width, _ = images.shape
    cos, sin = math.cos(angle), math.sin(angle)
    x = ((width - 1) - (cos * (width - 1) - sin * (height - 1))) / 2
    y = ((height - 1) - (sin * (width - 1) + cos * (height - 1))) / 2
    rotated = tf.raw_ops.ImageProjectiveTransformV3(
        images=images,
        transforms=[[cos, -sin, x, sin, cos, y, 0.0, 0.0]],
        output_shape=[height, width],
        fill_value=0.0,
        interpolation="BILINEAR",
        fill_mode="REFLECT",
    )
    row = tf.linspace(-1.0, 1.0, height)[:, None, None]
    column = tf.linspace(-1.0, 1.0, width)[None, :, None]
    return rotated * tf.exp(-(row * row + column * column))


def main(arguments: Sequence[str] | None = None) -> int:
    """Compile and compare; the exit status is 1 if the results differ or something fell back."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--height", type=int, default=480)
    parser.add_argument("--width", type=int, default=640)
    parser.add_argument("--degrees", type=float, default=20.0)
    args = parser.parse_args(arguments)

    random = np.random.default_rng(0)
    images = random.random((2, args.height, args.width, 3), np.float32)
    angle = math.radians(args.degrees)
    compiled = polyblocks_jit_tf(rotate_and_darken)
    result = compiled(images, angle)
    expected = rotate_and_darken(tf.constant(images), angle)
    difference = float(tf.reduce_max(tf.abs(result - expected)))
    print(f"largest difference: {difference:.1e}")
    report = compiled.polyblocks_report()
    print(report)
    return 0 if difference < 1e-3 and report.whole else 1


if __name__ == "__main__":
    sys.exit(main())
