"""Weights of neighbours along an axis that is resized, as PyTorch's kernels compute them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from polyblocks_torch.decomp.axis_maps import AxisMap

#: Weights of neighbours by their distance.
Kernel = Callable[[NDArray[Any]], NDArray[Any]]


def linear(
    extent: int, output: int, align_corners: bool, factor: float | None, dtype: torch.dtype
) -> AxisMap:
    """Between the elements on both sides.

    Args:
        extent: of the input.
        output: of the result.
        align_corners: whether the first and last elements stay where they are.
        factor: outputs for each input; None for the ratio of the sizes.
        dtype: of the elements; of 16 bits places are computed in float32.
    """
    if output == extent:
        return _as_it_is(extent)
    place = np.maximum(_places(extent, output, align_corners, factor, dtype), 0)
    before = np.minimum(place.astype(np.int64), extent - 1)
    after = np.minimum(before + 1, extent - 1)
    high = np.clip(place - before.astype(place.dtype), 0, 1)
    weights = np.stack((1 - high, high), -1).astype(np.float64)
    return AxisMap(np.stack((before, after), -1), weights)


def cubic(
    extent: int, output: int, align_corners: bool, factor: float | None, dtype: torch.dtype
) -> AxisMap:
    """Weights of four elements; those beyond the border are the first or last one."""
    place = _places(extent, output, align_corners, factor, dtype)
    before = np.floor(place)
    offsets = np.arange(-1, 3)
    distance = np.abs(place[:, None] - before[:, None] - offsets.astype(place.dtype))
    places = np.clip(before.astype(np.int64)[:, None] + offsets, 0, extent - 1)
    return AxisMap(places, _keys(distance, -0.75).astype(np.float64))


def antialiased(
    extent: int,
    output: int,
    align_corners: bool,
    factor: float | None,
    dtype: torch.dtype,
    support: int,
    kernel: Kernel,
) -> AxisMap:
    """As Pillow does it: a kernel that is widened where an image shrinks, and cut at the border.

    Args:
        support: half the width of the kernel, in elements.
        kernel: of distances.
    """
    number = _number(dtype)
    scale = _scale(extent, output, align_corners, factor, number)
    reach = number(support) * max(scale, number(1))
    inverse = 1 / max(scale, number(1))
    center = scale * (np.arange(output).astype(number) + number(0.5))
    low = np.maximum((center - reach + number(0.5)).astype(np.int64), 0)
    high = np.minimum((center + reach + number(0.5)).astype(np.int64), extent)
    offsets = np.arange(max(int((high - low).max()), 1))
    places = low[:, None] + offsets
    present = places < high[:, None]
    distance = (places.astype(number) - center[:, None] + number(0.5)) * inverse
    weights = np.where(present, kernel(np.abs(distance)), 0)
    total = weights.sum(1, keepdims=True)
    weights = (weights / np.where(total == 0, 1, total)).astype(np.float64)
    places = np.minimum(places, extent - 1)
    return AxisMap(places, weights, None if present.all() else present)


def triangle(distance: NDArray[Any]) -> NDArray[Any]:
    return np.maximum(1 - distance, 0)


def keys(distance: NDArray[Any]) -> NDArray[Any]:
    """Keys' cubic."""
    return _keys(distance, -0.5)


def lanczos(distance: NDArray[Any]) -> NDArray[Any]:
    """Three lobes of a sine, damped by a wider one."""
    return np.where(distance < 3, np.sinc(distance) * np.sinc(distance / 3), 0)


def _keys(distance: NDArray[Any], a: float) -> NDArray[Any]:
    inner = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    outer = (((distance - 5) * distance + 8) * distance - 4) * a
    return np.where(distance <= 1, inner, np.where(distance < 2, outer, 0))


def _as_it_is(extent: int) -> AxisMap:
    """PyTorch's kernels leave an axis of the same size alone, whatever scale was given."""
    return AxisMap(np.arange(extent)[:, None])


def _number(dtype: torch.dtype) -> Any:
    """The dtype of places."""
    return np.float64 if dtype == torch.float64 else np.float32


def _scale(extent: int, output: int, align_corners: bool, factor: float | None, number: Any) -> Any:
    """Inputs for each output."""
    if align_corners:
        return number(extent - 1) / number(output - 1) if output > 1 else number(0)
    if factor is not None and factor > 0:
        return number(1.0 / factor)
    return number(extent) / number(output)


def _places(
    extent: int, output: int, align_corners: bool, factor: float | None, dtype: torch.dtype
) -> NDArray[Any]:
    """Where outputs lie between the elements of the input."""
    number = _number(dtype)
    scale = _scale(extent, output, align_corners, factor, number)
    target = np.arange(output).astype(number)
    if align_corners:
        return scale * target
    return scale * (target + number(0.5)) - number(0.5)
