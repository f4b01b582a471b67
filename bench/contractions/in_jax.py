"""The contractions in JAX: for XLA, and for IREE, which takes the StableHLO of JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax

from bench.constants import NORM_EPS


def matmul(x: Array, w: Array) -> Array:
    """M x K, K x N -> M x N; further dimensions in front are batches."""
    return x @ w


def matmul_transposed(x: Array, w: Array) -> Array:
    """M x K, N x K -> M x N."""
    return x @ w.T


def matmul_int8(x: Array, w: Array) -> Array:
    """M x K, K x N -> M x N, of int8 into int32."""
    return jnp.matmul(x, w, preferred_element_type=jnp.int32)


def mlp(x: Array, wide: Array, wide_bias: Array, narrow: Array, narrow_bias: Array) -> Array:
    """Two linear layers with a GELU between them; the weights are outputs x inputs."""
    hidden = jax.nn.gelu(x @ wide.T + wide_bias, approximate=False)
    return hidden @ narrow.T + narrow_bias


def linear_residual_norm(
    x: Array, w: Array, bias: Array, residual: Array, scale: Array, shift: Array
) -> Array:
    """A linear layer, a shortcut and a layer normalization, as in BERT."""
    y = residual + (x @ w.T + bias)
    mean = y.mean(axis=-1, keepdims=True)
    variance = y.var(axis=-1, keepdims=True)
    return (y - mean) * lax.rsqrt(variance + NORM_EPS) * scale + shift


def nearest(points: Array, centres: Array) -> Array:
    """The number of the nearest centre of each point; the point's own square does not matter."""
    return ((centres * centres).sum(axis=1) - 2 * (points @ centres.T)).argmin(axis=1)


def _convolved(x: Array, w: Array, stride: int, layouts: tuple[str, str, str]) -> Array:
    reach = w.shape[2] // 2
    return lax.conv_general_dilated(
        x, w, (stride, stride), [(reach, reach)] * 2, dimension_numbers=layouts
    )


_NCHW = ("NCHW", "OIHW", "NCHW")
_NHWC = ("NHWC", "OHWI", "NHWC")


def conv_bias_relu(x: Array, w: Array, bias: Array) -> Array:
    """N x C x H x W with O x C x K x K, padded by half a kernel."""
    return jax.nn.relu(_convolved(x, w, 1, _NCHW) + bias[:, None, None])


def strided_conv_bias_relu(x: Array, w: Array, bias: Array) -> Array:
    """The same at every other place."""
    return jax.nn.relu(_convolved(x, w, 2, _NCHW) + bias[:, None, None])


def conv_bias_relu_nhwc(x: Array, w: Array, bias: Array) -> Array:
    """N x H x W x C with O x K x K x C, padded by half a kernel."""
    return jax.nn.relu(_convolved(x, w, 1, _NHWC) + bias)


def strided_conv_bias_relu_nhwc(x: Array, w: Array, bias: Array) -> Array:
    """The same at every other place."""
    return jax.nn.relu(_convolved(x, w, 2, _NHWC) + bias)


def depthwise(x: Array, w: Array) -> Array:
    """Each channel with a kernel of its own: N x C x H x W with C x 1 x K x K."""
    reach = w.shape[2] // 2
    return lax.conv_general_dilated(
        x,
        w,
        (1, 1),
        [(reach, reach)] * 2,
        dimension_numbers=_NCHW,
        feature_group_count=x.shape[1],
    )
