"""The contractions in PyTorch; its layouts are those of the arguments."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from bench.constants import NORM_EPS


def matmul(x: Tensor, w: Tensor) -> Tensor:
    """M x K, K x N -> M x N; further dimensions in front are batches."""
    return x @ w


def matmul_transposed(x: Tensor, w: Tensor) -> Tensor:
    """M x K, N x K -> M x N."""
    return x @ w.T


def matmul_int8(x: Tensor, w: Tensor) -> Tensor:
    """M x K, K x N -> M x N, of int8 into int32."""
    return torch._int_mm(x, w)


def mlp(x: Tensor, wide: Tensor, wide_bias: Tensor, narrow: Tensor, narrow_bias: Tensor) -> Tensor:
    """Two linear layers with a GELU between them; the weights are outputs x inputs."""
    hidden = functional.gelu(functional.linear(x, wide, wide_bias))
    return functional.linear(hidden, narrow, narrow_bias)


def linear_residual_norm(
    x: Tensor, w: Tensor, bias: Tensor, residual: Tensor, scale: Tensor, shift: Tensor
) -> Tensor:
    """A linear layer, a shortcut and a layer normalization, as in BERT."""
    y = residual + functional.linear(x, w, bias)
    return functional.layer_norm(y, y.shape[-1:], scale, shift, NORM_EPS)


def nearest(points: Tensor, centres: Tensor) -> Tensor:
    """The number of the nearest centre of each point; the point's own square does not matter."""
    return ((centres * centres).sum(1) - 2 * (points @ centres.T)).argmin(1)


def _convolved(x: Tensor, w: Tensor, bias: Tensor, stride: int) -> Tensor:
    return torch.relu(functional.conv2d(x, w, bias, stride, w.shape[-1] // 2))


def conv_bias_relu(x: Tensor, w: Tensor, bias: Tensor) -> Tensor:
    """N x C x H x W with O x C x K x K, padded by half a kernel."""
    return _convolved(x, w, bias, 1)


def strided_conv_bias_relu(x: Tensor, w: Tensor, bias: Tensor) -> Tensor:
    """The same at every other place."""
    return _convolved(x, w, bias, 2)


def _convolved_nhwc(x: Tensor, w: Tensor, bias: Tensor, stride: int) -> Tensor:
    # Views: what PyTorch calls the channels_last format of image, weight and result.
    y = _convolved(x.permute(0, 3, 1, 2), w.permute(0, 3, 1, 2), bias, stride)
    return y.permute(0, 2, 3, 1)


def conv_bias_relu_nhwc(x: Tensor, w: Tensor, bias: Tensor) -> Tensor:
    """N x H x W x C with O x K x K x C, padded by half a kernel."""
    return _convolved_nhwc(x, w, bias, 1)


def strided_conv_bias_relu_nhwc(x: Tensor, w: Tensor, bias: Tensor) -> Tensor:
    """The same at every other place."""
    return _convolved_nhwc(x, w, bias, 2)


def depthwise(x: Tensor, w: Tensor) -> Tensor:
    """Each channel with a kernel of its own: N x C x H x W with C x 1 x K x K."""
    return functional.conv2d(x, w, padding=w.shape[-1] // 2, groups=x.shape[1])
