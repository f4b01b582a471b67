"""Convolutions, pools, resizes and normalizations."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn import functional

from bench.cliffs.case import Array, Case, Draw, side

Maker = Callable[[Draw, int], tuple[Array, ...]]


def _images(channels: int = 32, batch: int = 4, depth: int = 2) -> Maker:
    def make(draw: Draw, n: int) -> tuple[Array, ...]:
        extent = side(n, depth, batch * channels)
        return (draw.normal(batch, channels, *[extent] * depth),)

    return make


def _with_weights(*weights: int, channels: int, batch: int = 4, depth: int = 2) -> Maker:
    images = _images(channels, batch, depth)
    return lambda draw, n: (*images(draw, n // 4), draw.normal(*weights) / 8)


def _normalized(draw: Draw, n: int) -> tuple[Array, ...]:
    return *_images()(draw, n), draw.normal(32), draw.normal(32)


def _batch_norm(training: bool):
    def function(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        mean, var = x.new_zeros(32), x.new_ones(32)
        return functional.batch_norm(x, mean, var, w, b, training)

    return function


def _resized(mode: str, factor: float = 2.0, **options: bool):
    return lambda x: functional.interpolate(x, scale_factor=factor, mode=mode, **options)


def _unpooled(x: torch.Tensor) -> torch.Tensor:
    values, places = functional.max_pool2d(x, 2, return_indices=True)
    return functional.max_unpool2d(values, places, 2)


CASES = (
    Case(
        "conv1d 9",
        lambda x, w: functional.conv1d(x, w, padding=4),
        _with_weights(32, 32, 9, channels=32, depth=1),
        gradient=True,
    ),
    Case("conv2d 1x1", functional.conv2d, _with_weights(64, 64, 1, 1, channels=64), gradient=True),
    Case(
        "conv2d 3x3",
        lambda x, w: functional.conv2d(x, w, padding=1),
        _with_weights(32, 32, 3, 3, channels=32),
        gradient=True,
    ),
    Case(
        "conv2d 3x3/2",
        lambda x, w: functional.conv2d(x, w, stride=2, padding=1),
        _with_weights(32, 32, 3, 3, channels=32),
        gradient=True,
    ),
    Case(
        "conv2d 3x3, dilated",
        lambda x, w: functional.conv2d(x, w, dilation=2, padding=2),
        _with_weights(32, 32, 3, 3, channels=32),
    ),
    Case(
        "conv2d 3x3, groups",
        lambda x, w: functional.conv2d(x, w, padding=1, groups=4),
        _with_weights(32, 8, 3, 3, channels=32),
        gradient=True,
    ),
    Case(
        "conv2d 3x3, depthwise",
        lambda x, w: functional.conv2d(x, w, padding=1, groups=32),
        _with_weights(32, 1, 3, 3, channels=32),
        gradient=True,
    ),
    Case(
        "conv2d 7x7, depthwise",
        lambda x, w: functional.conv2d(x, w, padding=3, groups=32),
        _with_weights(32, 1, 7, 7, channels=32),
    ),
    Case(
        "conv2d 11x11/4 of 3 channels",
        lambda x, w: functional.conv2d(x, w, stride=4, padding=2),
        _with_weights(64, 3, 11, 11, channels=3),
        gradient=True,
    ),
    Case(
        "conv2d 7x7/2 of 3 channels",
        lambda x, w: functional.conv2d(x, w, stride=2, padding=3),
        _with_weights(64, 3, 7, 7, channels=3),
    ),
    Case(
        "conv3d 3x3x3",
        lambda x, w: functional.conv3d(x, w, padding=1),
        _with_weights(16, 16, 3, 3, 3, channels=16, depth=3),
        gradient=True,
    ),
    Case(
        "conv_transpose1d 4/2",
        lambda x, w: functional.conv_transpose1d(x, w, stride=2, padding=1),
        _with_weights(32, 32, 4, channels=32, depth=1),
    ),
    Case(
        "conv_transpose2d 4x4/2",
        lambda x, w: functional.conv_transpose2d(x, w, stride=2, padding=1),
        _with_weights(32, 16, 4, 4, channels=32),
        gradient=True,
    ),
    Case(
        "conv_transpose3d 2/2",
        lambda x, w: functional.conv_transpose3d(x, w, stride=2),
        _with_weights(16, 8, 2, 2, 2, channels=16, depth=3),
    ),
    Case("max_pool1d 2", lambda x: functional.max_pool1d(x, 2), _images(depth=1), gradient=True),
    Case("max_pool2d 2", lambda x: functional.max_pool2d(x, 2), _images(), gradient=True),
    Case("max_pool2d 3/2", lambda x: functional.max_pool2d(x, 3, 2, 1), _images(), gradient=True),
    Case("max_pool2d 5/1", lambda x: functional.max_pool2d(x, 5, 1, 2), _images()),
    Case(
        "max_pool2d with positions",
        lambda x: functional.max_pool2d(x, 2, return_indices=True),
        _images(),
    ),
    Case("max_pool3d 2", lambda x: functional.max_pool3d(x, 2), _images(16, 2, 3), gradient=True),
    Case("max_unpool2d", _unpooled, _images()),
    Case("avg_pool1d 3/2", lambda x: functional.avg_pool1d(x, 3, 2), _images(depth=1)),
    Case("avg_pool2d 2", lambda x: functional.avg_pool2d(x, 2), _images(), gradient=True),
    Case("avg_pool2d 3/1", lambda x: functional.avg_pool2d(x, 3, 1, 1), _images(), gradient=True),
    Case(
        "avg_pool2d larger than the image",
        lambda x: functional.avg_pool2d(x, 7, 512, ceil_mode=True),
        _images(512, 4),
    ),
    Case("avg_pool3d 2", lambda x: functional.avg_pool3d(x, 2), _images(16, 2, 3)),
    Case("lp_pool2d 2", lambda x: functional.lp_pool2d(x, 2.0, 2), _images()),
    Case("adaptive_avg_pool1d 7", lambda x: functional.adaptive_avg_pool1d(x, 7), _images(depth=1)),
    Case(
        "adaptive_avg_pool2d 1",
        lambda x: functional.adaptive_avg_pool2d(x, 1),
        _images(),
        gradient=True,
    ),
    Case(
        "adaptive_avg_pool2d 7",
        lambda x: functional.adaptive_avg_pool2d(x, 7),
        _images(),
        gradient=True,
    ),
    Case("adaptive_avg_pool2d 5", lambda x: functional.adaptive_avg_pool2d(x, 5), _images()),
    Case("adaptive_max_pool2d 7", lambda x: functional.adaptive_max_pool2d(x, 7), _images()),
    Case("resize, nearest", _resized("nearest"), _images(8), gradient=True),
    Case("resize, nearest-exact", _resized("nearest-exact", 1.5), _images(8)),
    Case("resize, bilinear", _resized("bilinear"), _images(8), gradient=True),
    Case("resize, bilinear, half", _resized("bilinear", 0.5), _images(8)),
    Case("resize, bilinear, antialiased", _resized("bilinear", 0.5, antialias=True), _images(8)),
    Case("resize, bicubic", _resized("bicubic"), _images(8), gradient=True),
    Case("resize, area", _resized("area", 0.5), _images(8)),
    Case("resize, linear", _resized("linear"), _images(8, depth=1)),
    Case("resize, trilinear", _resized("trilinear"), _images(8, 2, 3)),
    Case("batch_norm, training", _batch_norm(True), _normalized, gradient=True),
    Case("batch_norm, inference", _batch_norm(False), _normalized),
    Case(
        "group_norm", lambda x, w, b: functional.group_norm(x, 8, w, b), _normalized, gradient=True
    ),
    Case(
        "instance_norm",
        lambda x, w, b: functional.instance_norm(x, weight=w, bias=b),
        _normalized,
        gradient=True,
    ),
    Case("local_response_norm", lambda x: functional.local_response_norm(x, 5), _images()),
    Case(
        "affine_grid and sample",
        lambda x, t: functional.grid_sample(
            x, functional.affine_grid(t, x.shape, align_corners=False), align_corners=False
        ),
        lambda d, n: (*_images(8)(d, n), d.normal(4, 2, 3) / 2),
    ),
)
