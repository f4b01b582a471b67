"""Two photographs in one without a visible seam, by Laplacian pyramids in TensorFlow.

Details are blended along a narrow seam, shades along a wide one (Burt and Adelson 1983). Writes
the two side by side, cut, and blended.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf
from PIL import Image
from skimage import data

from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf


def smaller(image: tf.Tensor) -> tf.Tensor:
    """(1, height, width, channels) at half the resolution, after five taps along either side."""
    channels = image.shape[3]
    taps = tf.constant([1, 4, 6, 4, 1], image.dtype) / 16
    kernel = tf.tile((taps[:, None] * taps)[:, :, None, None], (1, 1, channels, 1))
    padded = tf.pad(image, [[0, 0], [2, 1], [2, 1], [0, 0]], "SYMMETRIC")
    return tf.nn.depthwise_conv2d(padded, kernel, (1, 2, 2, 1), "VALID")


@polyblocks_jit_tf(compile_options={"target": "cpu", "strict_target": True})
def blend(one: tf.Tensor, other: tf.Tensor, mask: tf.Tensor, levels: int = 6) -> tf.Tensor:
    """The first image (1, height, width, 3) where the mask (1, height, width, 1) is 1."""
    masks, ones, others = [mask], [one], [other]
    for pyramid in (masks, ones, others):
        for _ in range(levels - 1):
            pyramid.append(smaller(pyramid[-1]))
    result = masks[-1] * ones[-1] + (1 - masks[-1]) * others[-1]
    for level in reversed(range(levels - 1)):
        size = masks[level].shape[1:3]
        first = ones[level] - tf.image.resize(ones[level + 1], size)
        second = others[level] - tf.image.resize(others[level + 1], size)
        blended = masks[level] * first + (1 - masks[level]) * second
        result = tf.image.resize(result, size) + blended
    return tf.clip_by_value(result, 0.0, 1.0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Blend; the exit status is 1 if the result is not TensorFlow's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=288, help="a multiple of 32")
    parser.add_argument("--out", type=Path, default=Path("out/tf_seam.png"))
    args = parser.parse_args(arguments)

    size = args.size
    stars, rocket = data.hubble_deep_field(), data.rocket()
    cuts = stars[300 : 300 + size, 300 : 300 + size], rocket[-size:, 200 : 200 + size]
    one, other = (tf.constant(cut[None] / 255, tf.float32) for cut in cuts)
    mask = np.zeros((1, size, size, 1), np.float32)
    mask[:, : size // 3] = 1
    result = blend(one, other, tf.constant(mask)).numpy()
    by_tensorflow = tf.function(blend.polyblocks_original)(one, other, tf.constant(mask))
    difference = float(np.abs(result - by_tensorflow).max())
    print(f"largest difference: {difference:.1e}")
    print(blend.polyblocks_report())

    both = np.concatenate([mask * one + (1 - mask) * other, result], axis=2)[0] * 255
    args.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(both.round().astype(np.uint8)).save(args.out)
    return 0 if difference < 1e-5 else 1


if __name__ == "__main__":
    sys.exit(main())
