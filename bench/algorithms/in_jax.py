"""The algorithms in JAX."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import Array, lax

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
from bench.constants import DIFFUSION, STEPS
from bench.programs.in_jax import (
    adaptive_sharpen,
    blur_x_blur_y,
    group_norm,
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


def heat(u: Array) -> Array:
    """Explicit steps of the heat equation on a plate whose border keeps its temperature."""
    for _ in range(STEPS):
        inner = u[1:-1, 1:-1]
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        inner = inner + DIFFUSION * (around - 4 * inner)
        middle = jnp.concatenate([u[1:-1, :1], inner, u[1:-1, -1:]], axis=1)
        u = jnp.concatenate([u[:1], middle, u[-1:]], axis=0)
    return u


def n_body(position: Array, velocity: Array, mass: Array) -> tuple[Array, Array]:
    """One leapfrog step of gravity between all bodies: N x 3, N x 3, N."""
    apart = position[None, :, :] - position[:, None, :]
    squared = (apart * apart).sum(-1) + SOFTENING
    pull = mass[None, :] / (squared * jnp.sqrt(squared))
    velocity = velocity + TIME_STEP * (apart * pull[:, :, None]).sum(1)
    return position + TIME_STEP * velocity, velocity


def scaling(position: Array, distances: Array) -> Array:
    """Gradient descent for multidimensional scaling: N x 2 points, N x N distances to reach."""
    for _ in range(SCALING_STEPS):
        apart = position[:, None, :] - position[None, :, :]
        length = jnp.sqrt((apart * apart).sum(-1) + SCALING_EPS)
        pull = 1 - distances / length
        position = position - SCALING_RATE * (pull[:, :, None] * apart).mean(1)
    return position


def k_means(points: Array, centers: Array) -> tuple[Array, Array]:
    """One of Lloyd's iterations: N x D points, K x D centers; new centers and who is whose."""
    apart = points[:, None, :] - centers[None, :, :]
    nearest = (apart * apart).sum(-1).argmin(1).astype(jnp.int32)
    sums = jnp.zeros_like(centers).at[nearest].add(points)
    counts = jnp.zeros(centers.shape[0], points.dtype).at[nearest].add(1.0)
    return sums / jnp.maximum(counts, 1.0)[:, None], nearest


def fir_bank(signal: Array, filters: Array) -> Array:
    """Every filter over one signal: T, F x K -> F x (T - K + 1)."""
    return lax.conv(signal[None, None, :], filters[:, None, :], (1,), "VALID")[0]


def color_conversion(image: Array) -> Array:
    """RGB to YCbCr: 3 x H x W."""
    red, green, blue = image[0], image[1], image[2]
    luma = LUMA[0] * red + LUMA[1] * green + LUMA[2] * blue
    return jnp.stack([luma, 0.5 + BLUE_SCALE * (blue - luma), 0.5 + RED_SCALE * (red - luma)])


def histogram_equalization(image: Array) -> Array:
    """Spread the brightness of an H x W image with values from 0 to 1."""
    level = jnp.clip((image * LEVELS).astype(jnp.int32), 0, LEVELS - 1)
    counts = jnp.zeros(LEVELS, jnp.int32).at[level.reshape(-1)].add(1)
    below = jnp.cumsum(counts)
    return (below.astype(image.dtype) / level.size)[level]


def black_scholes(price: Array, strike: Array, years: Array) -> tuple[Array, Array]:
    """Prices of European call and put options."""
    deviation = VOLATILITY * jnp.sqrt(years)
    d1 = (jnp.log(price / strike) + (INTEREST + 0.5 * VOLATILITY**2) * years) / deviation
    d2 = d1 - deviation
    discounted = strike * jnp.exp(-INTEREST * years)
    upper = 0.5 * (1 + lax.erf(d1 / math.sqrt(2)))
    lower = 0.5 * (1 + lax.erf(d2 / math.sqrt(2)))
    call = price * upper - discounted * lower
    return call, call - price + discounted


def escape_times(real: Array, imaginary: Array) -> Array:
    """How many steps of z^2 + c stay bounded: the Mandelbrot set."""
    x, y = real, imaginary
    count = jnp.zeros_like(real)
    for _ in range(ESCAPE_STEPS):
        inside = x * x + y * y <= ESCAPE
        count = count + inside.astype(real.dtype)
        x, y = (
            jnp.where(inside, x * x - y * y + real, x),
            jnp.where(inside, 2 * x * y + imaginary, y),
        )
    return count


def sobel(image: Array) -> Array:
    """By how much the gradient's magnitude is above that of noise: H x W -> (H-2) x (W-2)."""
    smooth = image[:-2] + 2 * image[1:-1] + image[2:]
    steep = image[2:] - image[:-2]
    gx = smooth[:, 2:] - smooth[:, :-2]
    gy = steep[:, :-2] + 2 * steep[:, 1:-1] + steep[:, 2:]
    size = jnp.sqrt(gx * gx + gy * gy)
    return jnp.maximum(size - EDGE, 0.0)


def upsample(image: Array) -> Array:
    """Twice the size, linear between pixels: H x W -> (2H-2) x (2W-2)."""
    upper, lower = image[:-1], image[1:]
    rows = jnp.stack([0.75 * upper + 0.25 * lower, 0.25 * upper + 0.75 * lower], 1)
    rows = rows.reshape(2 * image.shape[0] - 2, image.shape[1])
    left, right = rows[:, :-1], rows[:, 1:]
    columns = jnp.stack([0.75 * left + 0.25 * right, 0.25 * left + 0.75 * right], 2)
    return columns.reshape(rows.shape[0], 2 * image.shape[1] - 2)


def life(cells: Array) -> Array:
    """One generation of Conway's game on a torus: int32, H x W."""
    columns = cells + jnp.roll(cells, 1, 1) + jnp.roll(cells, -1, 1)
    around = columns + jnp.roll(columns, 1, 0) + jnp.roll(columns, -1, 0) - cells
    alive = (around == 3) | ((around == 2) & (cells == 1))
    return alive.astype(jnp.int32)


def _laplacian(x: Array) -> Array:
    inner = jnp.pad(x, 1)
    return inner[:-2, 1:-1] + inner[2:, 1:-1] + inner[1:-1, :-2] + inner[1:-1, 2:] - 4 * x


def gray_scott(u: Array, v: Array) -> tuple[Array, Array]:
    """One step of two substances that diffuse and react: H x W each."""
    reaction = u * v * v
    du = DIFFUSE_U * _laplacian(u) - reaction + FEED * (1 - u)
    dv = DIFFUSE_V * _laplacian(v) + reaction - (FEED + KILL) * v
    return u + du, v + dv


def wave(before: Array, now: Array) -> tuple[Array, Array]:
    """Steps of the wave equation on a membrane that is held at its border: H x W each."""
    for _ in range(WAVE_STEPS):
        before, now = now, 2 * now - before + COURANT2 * _laplacian(now)
    return before, now


def adam(weight: Array, gradient: Array, mean: Array, square: Array) -> tuple[Array, Array, Array]:
    """One step of Adam: the new weight and its moments."""
    mean = BETA1 * mean + (1 - BETA1) * gradient
    square = BETA2 * square + (1 - BETA2) * gradient * gradient
    corrected = mean / (1 - BETA1**ADAM_STEP)
    scale = jnp.sqrt(square / (1 - BETA2**ADAM_STEP)) + ADAM_EPS
    return weight - RATE * corrected / scale, mean, square


def max_pool(x: Array) -> Array:
    """Maxima of 3 x 3 windows, two apart: N x H x W x C."""
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "VALID")


def variogram(values: Array) -> Array:
    """Mean squared difference of each row to its neighbour rows, at four distances: H x W."""
    means = []
    for lag in (1, 2, 3, 4):
        difference = values[lag:] - values[:-lag]
        means.append((difference * difference).mean(0))
    return jnp.stack(means)


def conv_bias_relu(x: Array, weight: Array, bias: Array) -> Array:
    """A convolution layer: N x H x W x C, 3 x 3 x C x F."""
    layout = ("NHWC", "HWIO", "NHWC")
    y = lax.conv_general_dilated(x, weight, (1, 1), "SAME", dimension_numbers=layout)
    return jax.nn.relu(y + bias)


def attention(q: Array, k: Array, v: Array) -> Array:
    """Scaled dot-product attention: H x N x D."""
    scores = q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1])
    return jax.nn.softmax(scores, axis=-1) @ v


def mlp(x: Array, w1: Array, b1: Array, w2: Array, b2: Array) -> Array:
    """Two layers with a tanh between them."""
    return jnp.tanh(x @ w1 + b1) @ w2 + b2


def logistic_regression(weight: Array, x: Array, y: Array) -> Array:
    """One step of gradient descent: D, N x D, N."""
    error = jax.nn.sigmoid(x @ weight) - y
    return weight - RATE * (error @ x) / x.shape[0]
