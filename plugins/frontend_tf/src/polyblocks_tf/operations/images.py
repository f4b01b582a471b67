"""Operations on images as gathers and arithmetic.

The arithmetic is that of TensorFlow's kernels (``core/kernels/image`` of its sources), in the same
order, so that positions are rounded alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf


def projective_transform(op: Any, inputs: list[tf.Tensor]) -> Sequence[tf.Tensor] | None:
    """``ImageProjectiveTransformV2`` and ``V3``.

    The pixel (x, y) of the result is read at ((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k) with
    k = c0 x + c1 y + 1; where k is 0 it is the fill value.
    """
    images, transforms, output_shape = inputs[:3]
    size = tf.get_static_value(output_shape)
    if size is None or not images.shape.is_fully_defined():
        return None
    fill = inputs[3] if len(inputs) > 3 else tf.constant(0.0)
    mode = _text(op.get_attr("fill_mode")) if "fill_mode" in op.node_def.attr else "CONSTANT"
    interpolation = _text(op.get_attr("interpolation"))
    batch, height, width, _ = images.shape.as_list()
    rows, columns = int(size[0]), int(size[1])
    y = tf.range(rows, dtype=tf.float32)[None, :, None]
    x = tf.range(columns, dtype=tf.float32)[None, None, :]
    a0, a1, a2, b0, b1, b2, c0, c1 = (transforms[:, i, None, None] for i in range(8))
    k = c0 * x + c1 * y + 1.0
    source_x = _mapped((a0 * x + a1 * y + a2) / k, width, mode)
    source_y = _mapped((b0 * x + b1 * y + b2) / k, height, mode)
    shape = (batch, rows, columns)
    source_x, source_y = (tf.broadcast_to(v, shape) for v in (source_x, source_y))
    reader = _Reader(images, tf.cast(fill, images.dtype))
    if interpolation == "NEAREST":
        result = reader.at(_half_away(source_y), _half_away(source_x))
    elif interpolation == "BILINEAR":
        result = _bilinear(reader, source_y, source_x, images.dtype)
    else:
        return None
    inside = tf.broadcast_to(k != 0, shape)[..., None]
    return [tf.where(inside, result, reader.fill)]


def _bilinear(reader: _Reader, y: tf.Tensor, x: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    y_floor, x_floor = tf.floor(y), tf.floor(x)
    y_ceil, x_ceil = y_floor + 1, x_floor + 1
    left, right = (x_ceil - x)[..., None], (x - x_floor)[..., None]
    up, down = (y_ceil - y)[..., None], (y - y_floor)[..., None]

    def read(rows: tf.Tensor, columns: tf.Tensor) -> tf.Tensor:
        return tf.cast(reader.at(rows, columns), tf.float32)

    above = left * read(y_floor, x_floor) + right * read(y_floor, x_ceil)
    below = left * read(y_ceil, x_floor) + right * read(y_ceil, x_ceil)
    return tf.cast(up * above + down * below, dtype)


class _Reader:
    """Pixels of a batch of images at given places; outside lies the fill value."""

    def __init__(self, images: tf.Tensor, fill: tf.Tensor) -> None:
        self.fill = fill
        batch, self.height, self.width, channels = images.shape.as_list()
        self._pixels = tf.reshape(images, (batch * self.height * self.width, channels))
        self._first = tf.reshape(tf.range(batch) * (self.height * self.width), (batch, 1, 1))

    def at(self, rows: tf.Tensor, columns: tf.Tensor) -> tf.Tensor:
        """The pixels, of shape [batch, rows, columns, channels]; places are whole floats."""
        inside = (rows >= 0) & (rows < self.height) & (columns >= 0) & (columns < self.width)
        row = tf.cast(tf.clip_by_value(rows, 0, self.height - 1), tf.int32)
        column = tf.cast(tf.clip_by_value(columns, 0, self.width - 1), tf.int32)
        values = tf.gather(self._pixels, self._first + row * self.width + column)
        return tf.where(inside[..., None], values, self.fill)


def _mapped(place: tf.Tensor, extent: int, mode: str) -> tf.Tensor:
    """A place outside of the image as one inside, as the fill mode says."""
    if mode == "CONSTANT":
        return place
    if mode == "NEAREST":
        return tf.clip_by_value(place, 0.0, extent - 1.0)
    if extent <= 1:
        outside = (place < 0) | (place > extent - 1.0)
        return tf.where(outside, 0.0, place)
    if mode == "REFLECT":
        period = 2.0 * extent
        # (d c b a | a b c d | d c b a): left of the image first into (-period, 0).
        shifted = tf.where(place < -period, place + period * _whole(-place / period), place)
        left = tf.where(shifted < -float(extent), shifted + period, -shifted - 1.0)
        left = tf.where(place < 0, left, place)
        right = left - period * _whole(left / period)
        right = tf.where(right >= extent, period - right - 1.0, right)
        result = tf.where(left > extent - 1.0, right, left)
    else:  # WRAP: (a b c d | a b c d | a b c d)
        length = extent - 1.0
        left = place + extent * (_whole(-place / length) + 1.0)
        right = place - extent * _whole(place / length)
        result = tf.where(place < 0, left, tf.where(place > length, right, place))
    return tf.clip_by_value(result, 0.0, extent - 1.0)


def _whole(value: tf.Tensor) -> tf.Tensor:
    """Rounded towards zero, as a conversion to an integer does."""
    return tf.where(value < 0, tf.math.ceil(value), tf.floor(value))


def crop_and_resize(op: Any, inputs: list[tf.Tensor]) -> Sequence[tf.Tensor] | None:
    """``CropAndResize``: boxes in normalized coordinates, bilinear or nearest."""
    images, boxes, box_images, crop_size = inputs
    size = tf.get_static_value(crop_size)
    if size is None or not images.shape.is_fully_defined() or not boxes.shape.is_fully_defined():
        return None
    _, height, width, channels = images.shape.as_list()
    rows, columns = int(size[0]), int(size[1])
    y = _crop_places(boxes[:, 0:1], boxes[:, 2:3], height, rows)
    x = _crop_places(boxes[:, 1:2], boxes[:, 3:4], width, columns)
    fill = tf.constant(op.get_attr("extrapolation_value"), tf.float32)
    inside = ((y >= 0) & (y <= height - 1.0))[:, :, None] & ((x >= 0) & (x <= width - 1.0))[:, None]
    pixels = tf.reshape(images, (-1, channels))
    first = (tf.cast(box_images, tf.int32) * (height * width))[:, None, None]
    y = tf.clip_by_value(y, 0.0, height - 1.0)
    x = tf.clip_by_value(x, 0.0, width - 1.0)

    def read(row: tf.Tensor, column: tf.Tensor) -> tf.Tensor:
        index = (
            first
            + (tf.cast(row, tf.int32) * width)[:, :, None]
            + tf.cast(column, tf.int32)[:, None, :]
        )
        return tf.cast(tf.gather(pixels, index), tf.float32)

    if _text(op.get_attr("method")) == "bilinear":
        top, left = tf.floor(y), tf.floor(x)
        down, right = (y - top)[:, :, None, None], (x - left)[:, None, :, None]
        bottom, far = tf.math.ceil(y), tf.math.ceil(x)
        above = read(top, left) + (read(top, far) - read(top, left)) * right
        below = read(bottom, left) + (read(bottom, far) - read(bottom, left)) * right
        result = above + (below - above) * down
    else:
        result = read(_half_away(y), _half_away(x))
    return [tf.where(inside[..., None], result, fill)]


def _crop_places(first: tf.Tensor, last: tf.Tensor, extent: int, count: int) -> tf.Tensor:
    """Where the pixels of a crop lie in the image, of shape [boxes, count]."""
    if count == 1:
        return 0.5 * (first + last) * (extent - 1.0)
    scale = (last - first) * (extent - 1.0) / (count - 1.0)
    return first * (extent - 1.0) + tf.range(count, dtype=tf.float32)[None] * scale


def _half_away(value: tf.Tensor) -> tf.Tensor:
    """Rounded to the nearest, halves away from zero, as ``roundf`` of C.

    Adding a half rounds wrongly where the sum has no room for it; the difference has.
    """
    size = tf.abs(value)
    whole = tf.floor(size)
    return tf.sign(value) * tf.where(size - whole >= 0.5, whole + 1.0, whole)


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
