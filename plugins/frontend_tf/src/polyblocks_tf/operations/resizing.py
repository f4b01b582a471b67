"""Resizing of images as weighted sums: first along one axis, then along the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from polyblocks_tf.operations import resampling

#: Weights of a row that spans at least this part of the input are a product with a matrix.
DENSE = 0.25


def resize_bicubic(op: Any, inputs: list[tf.Tensor]) -> Sequence[tf.Tensor] | None:
    """``ResizeBicubic``."""
    images, size = inputs
    return _resized(images, size, lambda extent, n: resampling.bicubic(extent, n, *_corners(op)))


def resize_bicubic_grad(op: Any, inputs: list[tf.Tensor]) -> Sequence[tf.Tensor] | None:
    """``ResizeBicubicGrad``: back from the gradient of the result to that of the images."""
    grads, images = inputs
    if not grads.shape.is_fully_defined() or not images.shape.is_fully_defined():
        return None
    matrices = [
        resampling.bicubic(images.shape[axis], grads.shape[axis], *_corners(op)).T
        for axis in (1, 2)
    ]
    return [tf.cast(_along_both(grads, *matrices), images.dtype)]


def resize_area(op: Any, inputs: list[tf.Tensor]) -> Sequence[tf.Tensor] | None:
    """``ResizeArea``."""
    images, size = inputs
    align = op.get_attr("align_corners")
    return _resized(images, size, lambda extent, n: resampling.area(extent, n, align))


def scale_and_translate(op: Any, inputs: list[tf.Tensor]) -> Sequence[tf.Tensor] | None:
    """``ScaleAndTranslate``: the other kernels, and all that blur before they shrink."""
    images, size, *rest = inputs
    extents = tf.get_static_value(size)
    if extents is None or not images.shape.is_fully_defined():
        return None
    matrices = _scaled(op, rest, images.shape[1:3], extents)
    return None if matrices is None else [_along_both(images, *matrices)]


def scale_and_translate_grad(op: Any, inputs: list[tf.Tensor]) -> Sequence[tf.Tensor] | None:
    """``ScaleAndTranslateGrad``."""
    grads, images, *rest = inputs
    if not grads.shape.is_fully_defined() or not images.shape.is_fully_defined():
        return None
    matrices = _scaled(op, rest, images.shape[1:3], grads.shape[1:3])
    return None if matrices is None else [_along_both(grads, *(m.T for m in matrices))]


def _corners(op: Any) -> tuple[bool, bool]:
    return bool(op.get_attr("align_corners")), bool(op.get_attr("half_pixel_centers"))


def _scaled(
    op: Any, rest: Sequence[tf.Tensor], extents: Any, sizes: Any
) -> tuple[np.ndarray, np.ndarray] | None:
    scale, translation = (tf.get_static_value(tensor) for tensor in rest)
    if scale is None or translation is None:
        return None
    kernel, antialias = op.get_attr("kernel_type").decode(), bool(op.get_attr("antialias"))
    rows, columns = (
        resampling.scaled(
            int(extents[i]), int(sizes[i]), scale[i], translation[i], kernel, antialias
        )
        for i in (0, 1)
    )
    return None if rows is None or columns is None else (rows, columns)


def _resized(images: tf.Tensor, size: tf.Tensor, weights: Any) -> list[tf.Tensor] | None:
    sizes = tf.get_static_value(size)
    if sizes is None or not images.shape.is_fully_defined():
        return None
    rows, columns = (weights(images.shape[1 + i], int(sizes[i])) for i in (0, 1))
    return None if rows is None or columns is None else [_along_both(images, rows, columns)]


def _along_both(images: tf.Tensor, rows: np.ndarray, columns: np.ndarray) -> tf.Tensor:
    """In float32, first along the axis that leaves less to do along the other."""
    steps = [(rows, 1), (columns, 2)]
    steps.sort(key=lambda step: step[0].shape[0] / step[0].shape[1])
    result = tf.cast(images, tf.float32)
    for matrix, axis in steps:
        result = _along(result, matrix, axis)
    return result


def _along(values: tf.Tensor, matrix: np.ndarray, axis: int) -> tf.Tensor:
    """The product of a matrix and an array along an axis; of a band only what is in it."""
    count, extent = matrix.shape
    first, width = _band(matrix)
    if width >= DENSE * extent:
        moved = tf.tensordot(tf.constant(matrix), values, [[1], [axis]])
        order = [*range(1, axis + 1), 0, *range(axis + 1, len(values.shape))]
        return tf.transpose(moved, order)
    pixels = np.minimum(first[:, None] + np.arange(width), extent - 1)
    inside = first[:, None] + np.arange(width) < extent
    taps = np.where(inside, np.take_along_axis(matrix, pixels, 1), np.float32(0))
    read = tf.gather(values, tf.constant(pixels, tf.int32), axis=axis)
    shape = [1] * axis + [count, width] + [1] * (len(values.shape) - axis - 1)
    return tf.reduce_sum(read * tf.constant(taps.reshape(shape)), axis + 1)


def _band(matrix: np.ndarray) -> tuple[np.ndarray, int]:
    """The first column with a weight of each row, and the greatest extent of such columns."""
    weighs = matrix != 0
    some = weighs.any(1)
    first = np.where(some, weighs.argmax(1), 0)
    last = np.where(some, matrix.shape[1] - 1 - weighs[:, ::-1].argmax(1), 0)
    return first, int((last - first).max(initial=0)) + 1
