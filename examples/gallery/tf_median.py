"""A median filter in TensorFlow takes dead pixels out of a photograph, and keeps its edges.

Each pixel becomes the median of the 5 x 5 around it: the windows are stacked and sorted, and the
one in the middle is taken. Writes before and after.
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


@polyblocks_jit_tf(compile_options={"target": "cpu", "strict_target": True})
def median(image: tf.Tensor) -> tf.Tensor:
    """Medians of 5 x 5 pixels of an image (height, width); its edges are mirrored."""
    height, width = image.shape
    padded = tf.pad(image, [[2, 2], [2, 2]], "REFLECT")
    windows = [padded[y : y + height, x : x + width] for y in range(5) for x in range(5)]
    return tf.sort(tf.stack(windows, axis=-1), axis=-1)[..., 12]


def main(arguments: Sequence[str] | None = None) -> int:
    """Clean a photograph; the exit status is 1 if the result is not exactly TensorFlow's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=280)
    parser.add_argument("--dead", type=float, default=0.2, help="part of the pixels")
    parser.add_argument("--out", type=Path, default=Path("out/tf_median.png"))
    args = parser.parse_args(arguments)

    pixels = data.camera()[60 : 60 + args.size, 100 : 100 + args.size].astype(np.float32)
    random = np.random.default_rng(0)
    dead = random.random(pixels.shape) < args.dead
    spoilt = np.where(dead, random.choice([0, 255], pixels.shape), pixels).astype(np.float32)
    result = median(tf.constant(spoilt)).numpy()
    exact = np.array_equal(result, median.polyblocks_original(tf.constant(spoilt)))
    before, after = (float(np.abs(x - pixels).mean()) for x in (spoilt, result))
    print(f"mean error {before:.1f} -> {after:.1f} of 255; TensorFlow's result: {exact}")
    print(median.polyblocks_report())

    both = np.concatenate([spoilt, result], axis=1).astype(np.uint8)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(both).convert("RGB").save(args.out)
    return 0 if exact and after < before / 2 else 1


if __name__ == "__main__":
    sys.exit(main())
