"""An unsharp mask in TensorFlow: a soft photograph gets what a blur takes away from it once more.

Detail below a threshold is noise, and stays as it is. Writes before and after.
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


def blur(image: tf.Tensor) -> tf.Tensor:
    """Five binomial taps along either side of (3, height, width); edges are mirrored."""
    taps = tf.constant([1, 4, 6, 4, 1], image.dtype) / 16
    padded = tf.pad(image, [[0, 0], [2, 2], [2, 2]], "REFLECT")[..., None]
    across = tf.nn.conv2d(padded, tf.reshape(taps, (1, 5, 1, 1)), 1, "VALID")
    return tf.nn.conv2d(across, tf.reshape(taps, (5, 1, 1, 1)), 1, "VALID")[..., 0]


@polyblocks_jit_tf(compile_options={"target": "cpu", "strict_target": True})
def sharpen(image: tf.Tensor, weight: float = 3.0, threshold: float = 0.008) -> tf.Tensor:
    """Sharpen an image (3, height, width) with values from 0 to 1."""
    detail = image - blur(image)
    sharp = tf.where(tf.abs(detail) < threshold, image, image + weight * detail)
    return tf.clip_by_value(sharp, 0.0, 1.0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Sharpen a cat; the exit status is 1 if the result is not TensorFlow's in float64."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=280)
    parser.add_argument("--out", type=Path, default=Path("out/tf_sharpen.png"))
    args = parser.parse_args(arguments)

    pixels = data.chelsea()[: args.size, 60 : 60 + args.size].transpose(2, 0, 1)
    soft = blur(tf.constant(pixels / 255, tf.float32))
    result = sharpen(soft).numpy()
    apart = np.abs(result - sharpen.polyblocks_original(tf.cast(soft, tf.float64)).numpy())
    # Detail at the threshold may be taken for noise by one of the two.
    different = float((apart > 1e-5).mean())
    print(f"{different:.2%} of the values differ from TensorFlow's")
    print(sharpen.polyblocks_report())

    both = np.concatenate([soft.numpy(), result], axis=2).transpose(1, 2, 0) * 255
    args.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(both.round().astype(np.uint8)).save(args.out)
    return 0 if different < 1e-3 else 1


if __name__ == "__main__":
    sys.exit(main())
