"""Resizing of images as weighted sums: first along one axis, then along the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from polyblocks_tf.operations import resampling
from polyblocks_tf.operations.taps import Taps


def resize_bilinear(op: Any, inputs: list[tf.Tensor]) -> Sequence[tf.Tensor] | None:
    """``ResizeBilinear``: in each direction ``a + (b - a) * t``, as theirs rounds.

    The bridge has products with matrices, in which one NaN or infinity is everywhere.
    """
    images, size = inputs
    sizes = tf.get_static_value(size)
    if sizes is None or not images.shape.is_fully_defined():
        return None
    result = tf.cast(images, tf.float32)
    for axis in (2, 1):
        below, above, part = resampling.bilinear(
            images.shape[axis], int(sizes[axis - 1]), *_corners(op)
        )
        first, second = (tf.gather(result, tf.constant(p), axis=axis) for p in (below, above))
        part = part.reshape([-1] + [1] * (3 - axis))
        result = first + (second - first) * tf.constant(part)
    return [result]


def resize_bicubic(op: Any, inputs: list[tf.Tensor]) -> Sequence[tf.Tensor] | None:
    """``ResizeBicubic``."""
    images, size = inputs
    return _resized(images, size, lambda extent, n: resampling.bicubic(extent, n, *_corners(op)))


def resize_bicubic_grad(op: Any, inputs: list[tf.Tensor]) -> Sequence[tf.Tensor] | None:
    """``ResizeBicubicGrad``: back from the gradient of the result to that of the images."""
    grads, images = inputs
    if not grads.shape.is_fully_defined() or not images.shape.is_fully_defined():
        return None
    rows, columns = (
        resampling.bicubic(images.shape[axis], grads.shape[axis], *_corners(op)).transposed()
        for axis in (1, 2)
    )
    return [tf.cast(_along_both(grads, rows, columns), images.dtype)]


def resize_nearest_grad(op: Any, inputs: list[tf.Tensor]) -> Sequence[tf.Tensor] | None:
    """``ResizeNearestNeighborGrad``: for each pixel the sum of the gradients of what read it."""
    grads, size = inputs
    extents = tf.get_static_value(size)
    if extents is None or not grads.shape.is_fully_defined():
        return None
    result = grads
    for axis in (2, 1):
        extent = int(extents[axis - 1])
        pixels = resampling.nearest(extent, grads.shape[axis], *_corners(op))
        readers = [np.flatnonzero(pixels == pixel) for pixel in range(extent)]
        # As many for each: the first reader in the stead of one that is not there, which counts 0.
        count = np.arange(max(map(len, readers)))
        there = np.array([count < len(r) for r in readers])
        places = np.zeros(there.shape, np.int32)
        places[there] = np.concatenate(readers)
        there = there.reshape([1] * axis + [extent, -1] + [1] * (3 - axis))
        read = tf.gather(result, tf.constant(places), axis=axis)
        result = tf.reduce_sum(tf.where(there, read, tf.zeros((), read.dtype)), axis + 1)
    return [result]


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
    taps = _scaled(op, rest, images.shape[1:3], extents)
    return None if taps is None else [_along_both(images, *taps)]


def scale_and_translate_grad(op: Any, inputs: list[tf.Tensor]) -> Sequence[tf.Tensor] | None:
    """``ScaleAndTranslateGrad``."""
    grads, images, *rest = inputs
    if not grads.shape.is_fully_defined() or not images.shape.is_fully_defined():
        return None
    taps = _scaled(op, rest, images.shape[1:3], grads.shape[1:3])
    if taps is None:
        return None
    rows, columns = taps
    return [_along_both(grads, rows.transposed(), columns.transposed())]


def _corners(op: Any) -> tuple[bool, bool]:
    return bool(op.get_attr("align_corners")), bool(op.get_attr("half_pixel_centers"))


def _scaled(
    op: Any, rest: Sequence[tf.Tensor], extents: Any, sizes: Any
) -> tuple[Taps, Taps] | None:
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


def _along_both(images: tf.Tensor, rows: Taps, columns: Taps) -> tf.Tensor:
    """In float32, first along the axis that leaves less to do along the other."""
    steps = [(rows, 1), (columns, 2)]
    steps.sort(key=lambda step: len(step[0].pixels) / step[0].extent)
    result = tf.cast(images, tf.float32)
    for taps, axis in steps:
        result = taps.applied(result, axis)
    return result
