"""The contractions in TensorFlow, for its compiler XLA."""

from __future__ import annotations

import tensorflow as tf

from bench.constants import NORM_EPS


def matmul(x: tf.Tensor, w: tf.Tensor) -> tf.Tensor:
    """M x K, K x N -> M x N; further dimensions in front are batches."""
    return tf.matmul(x, w)


def matmul_transposed(x: tf.Tensor, w: tf.Tensor) -> tf.Tensor:
    """M x K, N x K -> M x N."""
    return tf.matmul(x, w, transpose_b=True)


def matmul_int8(x: tf.Tensor, w: tf.Tensor) -> tf.Tensor:
    """M x K, K x N -> M x N, of int8 into int32."""
    return tf.matmul(x, w, output_type=tf.int32)


def mlp(
    x: tf.Tensor,
    wide: tf.Tensor,
    wide_bias: tf.Tensor,
    narrow: tf.Tensor,
    narrow_bias: tf.Tensor,
) -> tf.Tensor:
    """Two linear layers with a GELU between them; the weights are outputs x inputs."""
    hidden = tf.nn.gelu(tf.matmul(x, wide, transpose_b=True) + wide_bias, approximate=False)
    return tf.matmul(hidden, narrow, transpose_b=True) + narrow_bias


def linear_residual_norm(
    x: tf.Tensor,
    w: tf.Tensor,
    bias: tf.Tensor,
    residual: tf.Tensor,
    scale: tf.Tensor,
    shift: tf.Tensor,
) -> tf.Tensor:
    """A linear layer, a shortcut and a layer normalization, as in BERT."""
    y = residual + (tf.matmul(x, w, transpose_b=True) + bias)
    mean, variance = tf.nn.moments(y, axes=[-1], keepdims=True)
    return tf.nn.batch_normalization(y, mean, variance, shift, scale, NORM_EPS)


def nearest(points: tf.Tensor, centres: tf.Tensor) -> tf.Tensor:
    """The number of the nearest centre of each point; the point's own square does not matter."""
    products = tf.matmul(points, centres, transpose_b=True)
    return tf.argmin(tf.reduce_sum(centres * centres, axis=1) - 2 * products, axis=1)


def _padded(x: tf.Tensor, reach: int, layout: str) -> tf.Tensor:
    # tf.nn.conv2d takes explicit paddings, but only of NHWC where there is no GPU.
    around = [reach, reach]
    inner = {"NCHW": [[0, 0], around, around], "NHWC": [around, around, [0, 0]]}[layout]
    return tf.pad(x, [[0, 0], *inner])


def _convolved(x: tf.Tensor, w: tf.Tensor, bias: tf.Tensor, stride: int, layout: str) -> tf.Tensor:
    """``w`` is K x K x inputs x outputs."""
    x = _padded(x, w.shape[0] // 2, layout)
    y = tf.nn.conv2d(x, w, stride, "VALID", data_format=layout)
    return tf.nn.relu(y + (bias[:, None, None] if layout == "NCHW" else bias))


def conv_bias_relu(x: tf.Tensor, w: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """N x C x H x W with O x C x K x K, padded by half a kernel."""
    return _convolved(x, tf.transpose(w, (2, 3, 1, 0)), bias, 1, "NCHW")


def strided_conv_bias_relu(x: tf.Tensor, w: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """The same at every other place."""
    return _convolved(x, tf.transpose(w, (2, 3, 1, 0)), bias, 2, "NCHW")


def conv_bias_relu_nhwc(x: tf.Tensor, w: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """N x H x W x C with O x K x K x C, padded by half a kernel."""
    return _convolved(x, tf.transpose(w, (1, 2, 3, 0)), bias, 1, "NHWC")


def strided_conv_bias_relu_nhwc(x: tf.Tensor, w: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """The same at every other place."""
    return _convolved(x, tf.transpose(w, (1, 2, 3, 0)), bias, 2, "NHWC")


def depthwise(x: tf.Tensor, w: tf.Tensor) -> tf.Tensor:
    """Each channel with a kernel of its own: N x C x H x W with C x 1 x K x K."""
    kernel = tf.transpose(w, (2, 3, 0, 1))
    x = _padded(x, kernel.shape[0] // 2, "NCHW")
    return tf.nn.depthwise_conv2d(x, kernel, (1, 1, 1, 1), "VALID", data_format="NCHW")
