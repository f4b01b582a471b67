"""A network in TensorFlow learns a picture by heart: position in, colour out.

One compiled function is a whole step of the training: the network, the loss, its gradient and the
optimizer. Writes what the network remembers after some, more and all steps.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image
from skimage import data

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import tensorflow as tf

from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf


def main(arguments: Sequence[str] | None = None) -> int:
    """Learn; the exit status is 1 if the error is not less than a quarter of the first one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--out", type=Path, default=Path("out/tf_picture.png"))
    args = parser.parse_args(arguments)

    keras.utils.set_random_seed(0)
    side = np.linspace(0, 511, args.size).astype(int)
    colours = tf.constant(data.astronaut()[side][:, side].reshape(-1, 3) / 255, tf.float32)
    line = tf.linspace(-1.0, 1.0, args.size)
    places = tf.reshape(tf.stack(tf.meshgrid(line, line, indexing="ij"), -1), (-1, 2))
    waves = tf.random.stateless_normal((2, 64), seed=(1, 2)) * 8.0
    model = keras.Sequential(
        [
            keras.Input((128,)),
            *(keras.layers.Dense(64, activation="relu") for _ in range(3)),
            keras.layers.Dense(3, activation="sigmoid"),
        ]
    )
    optimizer = keras.optimizers.Adam(3e-3)
    optimizer.build(model.trainable_variables)

    @polyblocks_jit_tf(compile_options={"target": "cpu", "strict_target": True})
    def step(places: tf.Tensor, colours: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """One step; returns the loss, and the picture that the network knew before."""
        with tf.GradientTape() as tape:
            phases = places @ waves
            known = model(tf.concat([tf.sin(phases), tf.cos(phases)], -1))
            loss = tf.reduce_mean(tf.square(known - colours))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss, known

    shown = {args.steps // 50: None, args.steps // 8: None, args.steps - 1: None}
    first = float(step(places, colours)[0])
    for i in range(1, args.steps):
        loss, known = step(places, colours)
        if i in shown:
            shown[i] = known.numpy().reshape(args.size, args.size, 3)
            print(f"step {i}: mean square error {float(loss):.4f}")
    print(step.polyblocks_report())

    pictures = [p for p in shown.values() if p is not None]
    args.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray((np.concatenate(pictures, 1) * 255).round().astype(np.uint8)).save(args.out)
    return 0 if float(loss) < first / 4 else 1


if __name__ == "__main__":
    sys.exit(main())
