"""A weighted sum of some pixels for each pixel of a result, along one axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf


@dataclass(frozen=True)
class Taps:
    """The pixels that each pixel of a result reads along one axis, and their weights.

    Attributes:
        pixels: int32 of shape [output size, taps], places in the input.
        weights: float32 of the same shape; the taps of a pixel may share one place.
        read: bool of shape [output size], False where a pixel of the result reads none and is 0.
        extent: the input size.
    """

    pixels: np.ndarray
    weights: np.ndarray
    read: np.ndarray
    extent: int

    @classmethod
    def of_rows(cls, rows: Sequence[tuple[Any, Any]], extent: int) -> Taps:
        """Of the pixels and weights of each pixel of the result, as many as each has.

        Where one has fewer taps than others, its last tap is several with a part of the weight
        each. A tap without weight in its stead would make NaN of an infinity.
        """
        counts = np.array([len(pixels) for pixels, _ in rows], np.int64)
        width = int(counts.max(initial=1))
        places = np.zeros((len(rows), width), np.int32)
        weights = np.zeros((len(rows), width), np.float32)
        for row, (pixels, given) in enumerate(rows):
            count = counts[row]
            if count:
                places[row, :count], places[row, count:] = pixels, pixels[-1]
                weights[row, :count] = given
                weights[row, count - 1 :] = given[-1] / np.float32(width - count + 1)
        return cls(places, weights, counts > 0, extent)

    @property
    def matrix(self) -> np.ndarray:
        """The weights as float32 of shape [output size, input size]."""
        found = np.zeros((len(self.pixels), self.extent), np.float32)
        np.add.at(found, (np.arange(len(self.pixels))[:, None], self.pixels), self.weights)
        return found

    def transposed(self) -> Taps:
        """Those of the gradient: back from the result to the input."""
        columns = self.matrix.T
        used = [np.flatnonzero(column) for column in columns]
        rows = [(places, column[places]) for places, column in zip(used, columns, strict=True)]
        return Taps.of_rows(rows, len(self.pixels))

    def applied(self, values: tf.Tensor, axis: int) -> tf.Tensor:
        """The sums along an axis of an array of float32."""
        size, width = self.pixels.shape
        after = len(values.shape) - axis - 1
        if width == self.extent and (matrix := self.matrix).all():
            # Each pixel is read once for each: a product with a matrix.
            moved = tf.tensordot(tf.constant(matrix), values, [[1], [axis]])
            return tf.transpose(moved, [*range(1, axis + 1), 0, *range(axis + 1, axis + 1 + after)])
        read = tf.gather(values, tf.constant(self.pixels), axis=axis)
        weights = self.weights.reshape([1] * axis + [size, width] + [1] * after)
        result = tf.reduce_sum(read * tf.constant(weights), axis + 1)
        if self.read.all():
            return result
        return tf.where(tf.constant(self.read.reshape([size] + [1] * after)), result, 0.0)
