"""The algorithms in TensorFlow."""

from __future__ import annotations

import math

import tensorflow as tf
from tensorflow import Tensor

from bench.algorithms.constants import (
    ADAM_EPS,
    ADAM_STEP,
    BETA1,
    BETA2,
    BLUE_SCALE,
    COURANT2,
    DIFFUSE_U,
    DIFFUSE_V,
    EDGE,
    ESCAPE,
    ESCAPE_STEPS,
    FEED,
    INTEREST,
    KILL,
    LEVELS,
    LUMA,
    RATE,
    RED_SCALE,
    SCALING_EPS,
    SCALING_RATE,
    SCALING_STEPS,
    SOFTENING,
    TIME_STEP,
    VOLATILITY,
    WAVE_STEPS,
)
from bench.programs.in_tensorflow import (
    adaptive_sharpen,
    blur_x_blur_y,
    group_norm,
    heat,
    layer_norm,
    rms_norm,
    softmax,
)

__all__ = [
    "adam",
    "adaptive_sharpen",
    "attention",
    "black_scholes",
    "blur_x_blur_y",
    "color_conversion",
    "conv_bias_relu",
    "escape_times",
    "fir_bank",
    "gray_scott",
    "group_norm",
    "heat",
    "histogram_equalization",
    "k_means",
    "layer_norm",
    "life",
    "logistic_regression",
    "max_pool",
    "mlp",
    "n_body",
    "rms_norm",
    "scaling",
    "sobel",
    "softmax",
    "upsample",
    "variogram",
    "wave",
]


def n_body(position: Tensor, velocity: Tensor, mass: Tensor) -> tuple[Tensor, Tensor]:
    """One leapfrog step of gravity between all bodies: N x 3, N x 3, N."""
    apart = position[None, :, :] - position[:, None, :]
    squared = tf.reduce_sum(apart * apart, axis=-1) + SOFTENING
    pull = mass[None, :] / (squared * tf.sqrt(squared))
    velocity = velocity + TIME_STEP * tf.reduce_sum(apart * pull[:, :, None], axis=1)
    return position + TIME_STEP * velocity, velocity


def scaling(position: Tensor, distances: Tensor) -> Tensor:
    """Gradient descent for multidimensional scaling: N x 2 points, N x N distances to reach."""
    for _ in range(SCALING_STEPS):
        apart = position[:, None, :] - position[None, :, :]
        length = tf.sqrt(tf.reduce_sum(apart * apart, axis=-1) + SCALING_EPS)
        pull = 1 - distances / length
        position = position - SCALING_RATE * tf.reduce_mean(pull[:, :, None] * apart, axis=1)
    return position


def k_means(points: Tensor, centers: Tensor) -> tuple[Tensor, Tensor]:
    """One of Lloyd's iterations: N x D points, K x D centers; new centers and who is whose."""
    apart = points[:, None, :] - centers[None, :, :]
    nearest = tf.argmin(tf.reduce_sum(apart * apart, axis=-1), axis=1, output_type=tf.int32)
    sums = tf.math.unsorted_segment_sum(points, nearest, centers.shape[0])
    counts = tf.math.unsorted_segment_sum(tf.ones(points.shape[0]), nearest, centers.shape[0])
    return sums / tf.maximum(counts, 1.0)[:, None], nearest


def fir_bank(signal: Tensor, filters: Tensor) -> Tensor:
    """Every filter over one signal: T, F x K -> F x (T - K + 1)."""
    result = tf.nn.conv1d(signal[None, :, None], tf.transpose(filters)[:, None, :], 1, "VALID")
    return tf.transpose(result[0])


def color_conversion(image: Tensor) -> Tensor:
    """RGB to YCbCr: 3 x H x W."""
    red, green, blue = image[0], image[1], image[2]
    luma = LUMA[0] * red + LUMA[1] * green + LUMA[2] * blue
    return tf.stack([luma, 0.5 + BLUE_SCALE * (blue - luma), 0.5 + RED_SCALE * (red - luma)])


def histogram_equalization(image: Tensor) -> Tensor:
    """Spread the brightness of an H x W image with values from 0 to 1."""
    level = tf.clip_by_value(tf.cast(image * LEVELS, tf.int32), 0, LEVELS - 1)
    flat = tf.reshape(level, [-1])
    counts = tf.math.unsorted_segment_sum(tf.ones_like(flat), flat, LEVELS)
    below = tf.cumsum(counts)
    return tf.gather(tf.cast(below, image.dtype) / flat.shape[0], level)


def black_scholes(price: Tensor, strike: Tensor, years: Tensor) -> tuple[Tensor, Tensor]:
    """Prices of European call and put options."""
    deviation = VOLATILITY * tf.sqrt(years)
    d1 = (tf.math.log(price / strike) + (INTEREST + 0.5 * VOLATILITY**2) * years) / deviation
    d2 = d1 - deviation
    discounted = strike * tf.exp(-INTEREST * years)
    upper = 0.5 * (1 + tf.math.erf(d1 / math.sqrt(2)))
    lower = 0.5 * (1 + tf.math.erf(d2 / math.sqrt(2)))
    call = price * upper - discounted * lower
    return call, call - price + discounted


def escape_times(real: Tensor, imaginary: Tensor) -> Tensor:
    """How many steps of z^2 + c stay bounded: the Mandelbrot set."""
    x, y = real, imaginary
    count = tf.zeros_like(real)
    for _ in range(ESCAPE_STEPS):
        inside = x * x + y * y <= ESCAPE
        count = count + tf.cast(inside, real.dtype)
        x, y = (
            tf.where(inside, x * x - y * y + real, x),
            tf.where(inside, 2 * x * y + imaginary, y),
        )
    return count


def sobel(image: Tensor) -> Tensor:
    """By how much the gradient's magnitude is above that of noise: H x W -> (H-2) x (W-2)."""
    smooth = image[:-2] + 2 * image[1:-1] + image[2:]
    steep = image[2:] - image[:-2]
    gx = smooth[:, 2:] - smooth[:, :-2]
    gy = steep[:, :-2] + 2 * steep[:, 1:-1] + steep[:, 2:]
    size = tf.sqrt(gx * gx + gy * gy)
    return tf.maximum(size - EDGE, 0.0)


def upsample(image: Tensor) -> Tensor:
    """Twice the size, linear between pixels: H x W -> (2H-2) x (2W-2)."""
    upper, lower = image[:-1], image[1:]
    rows = tf.stack([0.75 * upper + 0.25 * lower, 0.25 * upper + 0.75 * lower], axis=1)
    rows = tf.reshape(rows, (2 * image.shape[0] - 2, image.shape[1]))
    left, right = rows[:, :-1], rows[:, 1:]
    columns = tf.stack([0.75 * left + 0.25 * right, 0.25 * left + 0.75 * right], axis=2)
    return tf.reshape(columns, (rows.shape[0], 2 * image.shape[1] - 2))


def life(cells: Tensor) -> Tensor:
    """One generation of Conway's game on a torus: int32, H x W."""
    columns = cells + tf.roll(cells, 1, 1) + tf.roll(cells, -1, 1)
    around = columns + tf.roll(columns, 1, 0) + tf.roll(columns, -1, 0) - cells
    alive = (around == 3) | ((around == 2) & (cells == 1))
    return tf.cast(alive, tf.int32)


def _laplacian(x: Tensor) -> Tensor:
    inner = tf.pad(x, [[1, 1], [1, 1]])
    return inner[:-2, 1:-1] + inner[2:, 1:-1] + inner[1:-1, :-2] + inner[1:-1, 2:] - 4 * x


def gray_scott(u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """One step of two substances that diffuse and react: H x W each."""
    reaction = u * v * v
    du = DIFFUSE_U * _laplacian(u) - reaction + FEED * (1 - u)
    dv = DIFFUSE_V * _laplacian(v) + reaction - (FEED + KILL) * v
    return u + du, v + dv


def wave(before: Tensor, now: Tensor) -> tuple[Tensor, Tensor]:
    """Steps of the wave equation on a membrane that is held at its border: H x W each."""
    for _ in range(WAVE_STEPS):
        before, now = now, 2 * now - before + COURANT2 * _laplacian(now)
    return before, now


def adam(
    weight: Tensor, gradient: Tensor, mean: Tensor, square: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """One step of Adam: the new weight and its moments."""
    mean = BETA1 * mean + (1 - BETA1) * gradient
    square = BETA2 * square + (1 - BETA2) * gradient * gradient
    corrected = mean / (1 - BETA1**ADAM_STEP)
    scale = tf.sqrt(square / (1 - BETA2**ADAM_STEP)) + ADAM_EPS
    return weight - RATE * corrected / scale, mean, square


def max_pool(x: Tensor) -> Tensor:
    """Maxima of 3 x 3 windows, two apart: N x H x W x C."""
    return tf.nn.max_pool2d(x, 3, 2, "VALID")


def variogram(values: Tensor) -> Tensor:
    """Mean squared difference of each row to its neighbour rows, at four distances: H x W."""
    means = []
    for lag in (1, 2, 3, 4):
        difference = values[lag:] - values[:-lag]
        means.append(tf.reduce_mean(difference * difference, axis=0))
    return tf.stack(means)


def conv_bias_relu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """A convolution layer: N x H x W x C, 3 x 3 x C x F."""
    return tf.nn.relu(tf.nn.conv2d(x, weight, 1, "SAME") + bias)


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Scaled dot-product attention: H x N x D."""
    scores = tf.matmul(q, k, transpose_b=True) / math.sqrt(q.shape[-1])
    return tf.nn.softmax(scores, axis=-1) @ v


def mlp(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    """Two layers with a tanh between them."""
    return tf.tanh(x @ w1 + b1) @ w2 + b2


def logistic_regression(weight: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """One step of gradient descent: D, N x D, N."""
    error = tf.sigmoid(tf.linalg.matvec(x, weight)) - y
    return weight - RATE * tf.linalg.matvec(x, error, transpose_a=True) / x.shape[0]
