"""The cases in TensorFlow, for its compiler XLA."""

from __future__ import annotations

import tensorflow as tf

from bench.constants import (
    BINOMIAL,
    BLUR,
    CONTRAST_FLOOR,
    CORNER_SCALE,
    DIFFUSION,
    GROUPS,
    HARRIS,
    NORM_EPS,
    SHARPNESS,
    STEPS,
)


def blur_x_blur_y(image: tf.Tensor) -> tf.Tensor:
    """A separable blur as two convolutions: C x H x W -> C x (H-4) x (W-4)."""
    kernel = tf.constant(BLUR, dtype=image.dtype)
    across = tf.nn.conv2d(image[..., None], tf.reshape(kernel, (1, 5, 1, 1)), 1, "VALID")
    return tf.nn.conv2d(across, tf.reshape(kernel, (5, 1, 1, 1)), 1, "VALID")[..., 0]


def elementwise_chain(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """tanh(xy + 1) sigmoid(y) - exp(-x^2)."""
    return tf.tanh(x * y + 1) * tf.sigmoid(y) - tf.exp(-x * x)


def softmax(x: tf.Tensor) -> tf.Tensor:
    """Softmax of each row."""
    return tf.nn.softmax(x, axis=-1)


def log_softmax(x: tf.Tensor) -> tf.Tensor:
    """Logarithm of the softmax of each row."""
    return tf.nn.log_softmax(x, axis=-1)


def layer_norm(x: tf.Tensor, weight: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """Layer normalization of each row."""
    mean, variance = tf.nn.moments(x, axes=[-1], keepdims=True)
    return tf.nn.batch_normalization(x, mean, variance, bias, weight, NORM_EPS)


def rms_norm(x: tf.Tensor, weight: tf.Tensor) -> tf.Tensor:
    """Root-mean-square normalization of each row."""
    mean_square = tf.reduce_mean(tf.square(x), axis=-1, keepdims=True)
    return x * tf.math.rsqrt(mean_square + NORM_EPS) * weight


def group_norm(x: tf.Tensor, weight: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """Normalization over groups of channels: N x C x H x W."""
    grouped = tf.reshape(x, (x.shape[0], GROUPS, -1))
    mean, variance = tf.nn.moments(grouped, axes=[-1], keepdims=True)
    normal = tf.reshape((grouped - mean) * tf.math.rsqrt(variance + NORM_EPS), x.shape)
    return normal * weight[:, None, None] + bias[:, None, None]


def total(x: tf.Tensor) -> tf.Tensor:
    """Sum of all elements."""
    return tf.reduce_sum(x)


def row_means(x: tf.Tensor) -> tf.Tensor:
    """Mean of each row."""
    return tf.reduce_mean(x, axis=1)


def column_means(x: tf.Tensor) -> tf.Tensor:
    """Mean of each column."""
    return tf.reduce_mean(x, axis=0)


def row_argmax(x: tf.Tensor) -> tf.Tensor:
    """Where each row's first maximum lies."""
    return tf.argmax(x, axis=1)


def row_cumsum(x: tf.Tensor) -> tf.Tensor:
    """Running sum along each row."""
    return tf.cumsum(x, axis=1)


def _across(x: tf.Tensor, taps: tuple[float, ...]) -> tf.Tensor:
    """Correlation of each row with an odd number of taps; outside of the image is 0."""
    width, reach = x.shape[1], len(taps) // 2
    padded = tf.pad(x, [[0, 0], [reach, reach]])
    result = taps[0] * padded[:, :width]
    for i, tap in enumerate(taps[1:], 1):
        result = result + tap * padded[:, i : i + width]
    return result


def _down(x: tf.Tensor, taps: tuple[float, ...]) -> tf.Tensor:
    """Correlation of each column with an odd number of taps; outside of the image is 0."""
    height, reach = x.shape[0], len(taps) // 2
    padded = tf.pad(x, [[reach, reach], [0, 0]])
    result = taps[0] * padded[:height]
    for i, tap in enumerate(taps[1:], 1):
        result = result + tap * padded[i : i + height]
    return result


def _blur(x: tf.Tensor) -> tf.Tensor:
    return _down(_across(x, BINOMIAL), BINOMIAL)


def adaptive_sharpen(image: tf.Tensor) -> tf.Tensor:
    """See :func:`bench.programs.in_torch.adaptive_sharpen`."""
    linear = image * image * (0.8 + 0.2 * image)
    # Gradients: differences one way, smoothed the other way.
    gx = _down(_across(linear, (-0.5, 0.0, 0.5)), (0.25, 0.5, 0.25))
    gy = _down(_across(linear, (0.25, 0.5, 0.25)), (-0.5, 0.0, 0.5))
    # The structure tensor, and what it says about corners.
    xx, yy, xy = _blur(gx * gx), _blur(gy * gy), _blur(gx * gy)
    trace = xx + yy
    corner = xx * yy - xy * xy - HARRIS * trace * trace
    weight = 1 / (1 + CORNER_SCALE * tf.maximum(corner, 0.0))
    # Detail and its local contrast.
    base = _blur(linear)
    detail = linear - base
    contrast = tf.sqrt(_blur(detail * detail) + CONTRAST_FLOOR)
    gain = SHARPNESS * weight / (1 + contrast / CONTRAST_FLOOR**0.5)
    return tf.sqrt(tf.clip_by_value(base + (1 + gain) * detail, 0.0, 1.0))


def heat(u: tf.Tensor) -> tf.Tensor:
    """Explicit steps of the heat equation on a plate whose border keeps its temperature."""
    for _ in range(STEPS):
        inner = u[1:-1, 1:-1]
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        inner = inner + DIFFUSION * (around - 4 * inner)
        middle = tf.concat([u[1:-1, :1], inner, u[1:-1, -1:]], axis=1)
        u = tf.concat([u[:1], middle, u[-1:]], axis=0)
    return u


def transpose(x: tf.Tensor) -> tf.Tensor:
    """The transposed matrix, in row-major order."""
    return tf.transpose(x)


def pad_slice_concat(a: tf.Tensor, b: tf.Tensor, c: tf.Tensor) -> tf.Tensor:
    """Three matrices, padded or cut to one width, below each other."""
    top = tf.pad(a, [[0, 0], [8, 8]])
    middle = tf.pad(b, [[0, 0], [16, 0]], constant_values=1.0)[64:-64]
    bottom = tf.pad(c, [[0, 0], [32, 32]])[::2, 24:-24]
    return tf.concat([top, middle, bottom], axis=0)


def gather_rows(table: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
    """Rows of a table, by number."""
    return tf.gather(table, rows)
