"""The cases in JAX: for XLA, and for IREE, which takes the StableHLO that JAX makes of them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax

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


def blur_x_blur_y(image: Array) -> Array:
    """A separable blur as two convolutions: C x H x W -> C x (H-4) x (W-4)."""
    kernel = jnp.array(BLUR, dtype=image.dtype)
    across = lax.conv(image[:, None], kernel.reshape(1, 1, 1, 5), (1, 1), "VALID")
    return lax.conv(across, kernel.reshape(1, 1, 5, 1), (1, 1), "VALID")[:, 0]


def elementwise_chain(x: Array, y: Array) -> Array:
    """tanh(xy + 1) sigmoid(y) - exp(-x^2)."""
    return jnp.tanh(x * y + 1) * jax.nn.sigmoid(y) - jnp.exp(-x * x)


def softmax(x: Array) -> Array:
    """Softmax of each row."""
    return jax.nn.softmax(x, axis=-1)


def log_softmax(x: Array) -> Array:
    """Logarithm of the softmax of each row."""
    return jax.nn.log_softmax(x, axis=-1)


def layer_norm(x: Array, weight: Array, bias: Array) -> Array:
    """Layer normalization of each row."""
    mean = x.mean(axis=-1, keepdims=True)
    variance = x.var(axis=-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + NORM_EPS) * weight + bias


def rms_norm(x: Array, weight: Array) -> Array:
    """Root-mean-square normalization of each row."""
    return x * lax.rsqrt(jnp.square(x).mean(axis=-1, keepdims=True) + NORM_EPS) * weight


def group_norm(x: Array, weight: Array, bias: Array) -> Array:
    """Normalization over groups of channels: N x C x H x W."""
    grouped = x.reshape(x.shape[0], GROUPS, -1)
    mean = grouped.mean(axis=-1, keepdims=True)
    variance = grouped.var(axis=-1, keepdims=True)
    normal = ((grouped - mean) * lax.rsqrt(variance + NORM_EPS)).reshape(x.shape)
    return normal * weight[:, None, None] + bias[:, None, None]


def total(x: Array) -> Array:
    """Sum of all elements."""
    return x.sum()


def row_means(x: Array) -> Array:
    """Mean of each row."""
    return x.mean(axis=1)


def column_means(x: Array) -> Array:
    """Mean of each column."""
    return x.mean(axis=0)


def row_argmax(x: Array) -> Array:
    """Where each row's first maximum lies."""
    return x.argmax(axis=1)


def row_cumsum(x: Array) -> Array:
    """Running sum along each row."""
    return x.cumsum(axis=1)


def _across(x: Array, taps: tuple[float, ...]) -> Array:
    """Correlation of each row with an odd number of taps; outside of the image is 0."""
    width, reach = x.shape[1], len(taps) // 2
    padded = jnp.pad(x, ((0, 0), (reach, reach)))
    result = taps[0] * padded[:, :width]
    for i, tap in enumerate(taps[1:], 1):
        result = result + tap * padded[:, i : i + width]
    return result


def _down(x: Array, taps: tuple[float, ...]) -> Array:
    """Correlation of each column with an odd number of taps; outside of the image is 0."""
    height, reach = x.shape[0], len(taps) // 2
    padded = jnp.pad(x, ((reach, reach), (0, 0)))
    result = taps[0] * padded[:height]
    for i, tap in enumerate(taps[1:], 1):
        result = result + tap * padded[i : i + height]
    return result


def _blur(x: Array) -> Array:
    return _down(_across(x, BINOMIAL), BINOMIAL)


def adaptive_sharpen(image: Array) -> Array:
    """See :func:`bench.programs.in_torch.adaptive_sharpen`."""
    linear = image * image * (0.8 + 0.2 * image)
    # Gradients: differences one way, smoothed the other way.
    gx = _down(_across(linear, (-0.5, 0.0, 0.5)), (0.25, 0.5, 0.25))
    gy = _down(_across(linear, (0.25, 0.5, 0.25)), (-0.5, 0.0, 0.5))
    # The structure tensor, and what it says about corners.
    xx, yy, xy = _blur(gx * gx), _blur(gy * gy), _blur(gx * gy)
    trace = xx + yy
    corner = xx * yy - xy * xy - HARRIS * trace * trace
    weight = 1 / (1 + CORNER_SCALE * jnp.maximum(corner, 0.0))
    # Detail and its local contrast.
    base = _blur(linear)
    detail = linear - base
    contrast = jnp.sqrt(_blur(detail * detail) + CONTRAST_FLOOR)
    gain = SHARPNESS * weight / (1 + contrast / CONTRAST_FLOOR**0.5)
    return jnp.sqrt(jnp.clip(base + (1 + gain) * detail, 0.0, 1.0))


def heat(u: Array) -> Array:
    """Explicit steps of the heat equation on a plate whose border keeps its temperature."""

    def step(_: int, u: Array) -> Array:
        inner = u[1:-1, 1:-1]
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        return u.at[1:-1, 1:-1].set(inner + DIFFUSION * (around - 4 * inner))

    return lax.fori_loop(0, STEPS, step, u)


def transpose(x: Array) -> Array:
    """The transposed matrix, in row-major order."""
    return x.T


def pad_slice_concat(a: Array, b: Array, c: Array) -> Array:
    """Three matrices, padded or cut to one width, below each other."""
    top = jnp.pad(a, ((0, 0), (8, 8)))
    middle = jnp.pad(b, ((0, 0), (16, 0)), constant_values=1.0)[64:-64]
    bottom = jnp.pad(c, ((0, 0), (32, 32)))[::2, 24:-24]
    return jnp.concatenate([top, middle, bottom], axis=0)


def gather_rows(table: Array, rows: Array) -> Array:
    """Rows of a table, by number."""
    return jnp.take(table, rows, axis=0, mode="clip")
