"""Weights of one-dimensional resampling, as TensorFlow's kernels compute them.

Each function gives the :class:`Taps` of one axis. The arithmetic is that of ``core/kernels/image``
of TensorFlow's sources (``resize_bicubic_op.cc``, ``resize_area_op.cc``,
``scale_and_translate_op.cc``), in float32 where theirs is. So is what they read: a NaN or an
infinity goes where the kernel multiplies it, be it by 0, and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from polyblocks_tf.operations.taps import Taps

_f32 = np.float32

#: Positions between two pixels for which the bicubic kernel is tabulated.
_TABLE_SIZE = 1 << 10
#: A sum of weights below this is not divided by.
_TINY = 1000 * np.finfo(np.float32).tiny


def scale_of(extent: int, size: int, align_corners: bool) -> np.float32:
    """Input pixels per output pixel."""
    if align_corners and size > 1:
        return _f32(extent - 1) / _f32(size - 1)
    return _f32(extent) / _f32(size)


def bilinear(
    extent: int, size: int, align_corners: bool, half_pixel: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each output pixel the two that it lies between, and the part of the way (float32)."""
    row, scale = np.arange(size, dtype=np.float32), scale_of(extent, size, align_corners)
    place = (row + _f32(0.5)) * scale - _f32(0.5) if half_pixel else row * scale
    floor = np.floor(place)
    below = np.maximum(floor, 0).astype(np.int32)
    above = np.minimum(np.ceil(place), extent - 1).astype(np.int32)
    return below, above, place - floor


def nearest(extent: int, size: int, align_corners: bool, half_pixel: bool) -> np.ndarray:
    """The pixel that each output pixel is."""
    scale = scale_of(extent, size, align_corners)
    place = (np.arange(size, dtype=np.float32) + _f32(0.5 if half_pixel else 0)) * scale
    # Halves are rounded away from zero, as by roundf.
    whole = np.floor(place)
    whole += (place - whole >= 0.5) if align_corners else 0
    return np.minimum(whole, extent - 1).astype(np.int32)


def bicubic(extent: int, size: int, align_corners: bool, half_pixel: bool) -> Taps:
    """Four pixels each; with ``half_pixel`` those outside of the image have no weight."""
    table = _cubic_table(-0.5 if half_pixel else -0.75)
    scale = scale_of(extent, size, align_corners)
    rows = []
    for row in range(size):
        place = (_f32(row + 0.5) * scale - _f32(0.5)) if half_pixel else _f32(row) * scale
        first = math.floor(place)
        offset = round(float((place - _f32(first)) * _f32(_TABLE_SIZE)))
        taps = np.array(
            [
                table[offset, 1],
                table[offset, 0],
                table[_TABLE_SIZE - offset, 0],
                table[_TABLE_SIZE - offset, 1],
            ]
        )
        wanted = first - 1 + np.arange(4)
        pixels = np.clip(wanted, 0, extent - 1)
        if half_pixel:
            taps = _normalized(np.where(pixels == wanted, taps, _f32(0)))
        rows.append((pixels, taps))
    return Taps.of_rows(rows, extent)


def _cubic_table(a: float) -> np.ndarray:
    """The kernel at distances below 1 (column 0), and at those plus 1 (column 1)."""
    x = np.arange(_TABLE_SIZE + 1) / _TABLE_SIZE
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    x = x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.stack([near, far], 1).astype(np.float32)


def area(extent: int, size: int, align_corners: bool) -> Taps | None:
    """The part of each input pixel that an output pixel covers; None where it covers nothing."""
    scale = scale_of(extent, size, align_corners)
    if not scale:
        return None
    rows: list[tuple[Any, Any]] = []
    for row in range(size):
        begin, end = _f32(row) * scale, _f32(row + 1) * scale
        pixels, weights = [], []
        for pixel in range(math.floor(begin), math.ceil(end)):
            past = pixel + 1 > end
            if pixel < begin:
                part = scale if past else _f32(pixel + 1) - begin
            else:
                part = end - _f32(pixel) if past else _f32(1)
            pixels.append(min(pixel, extent - 1))
            weights.append(part / scale)
        rows.append((pixels, weights))
    return Taps.of_rows(rows, extent)


def scaled(
    extent: int, size: int, scale: float, translation: float, kernel: str, antialias: bool
) -> Taps | None:
    """A kernel at (scaled, translated) places; None for a kernel that is not known."""
    known = _KERNELS.get(kernel)
    if known is None or not scale > 0:
        return None
    function, radius = known
    step = _f32(1) / _f32(scale)
    start = -step * _f32(translation)
    width = max(step, _f32(1)) if antialias else _f32(1)
    reach = _f32(radius) * width
    span = min(2 * math.ceil(reach) + 1, extent)
    rows = []
    for row in range(size):
        # Theirs reads as many pixels for each, those beyond the kernel's reach with no weight.
        weights = np.zeros(span, np.float32)
        place = _f32(row + 0.5) * step + start
        if place < 0 or place > extent:
            rows.append((np.arange(span), weights))
            continue
        first = min(max(math.ceil(place - reach - _f32(0.5)), 0), extent - 1)
        last = min(max(math.floor(place + reach - _f32(0.5)), 0), extent - 1)
        pixels = np.arange(first, last + 1, dtype=np.float32)
        distance = np.abs((pixels + _f32(0.5) - place) * (_f32(1) / width))
        weights[: last + 1 - first] = _normalized(function(distance))
        seen = np.arange(first, min(first + span, extent))
        rows.append((seen, weights[: len(seen)]))
    return Taps.of_rows(rows, extent)


def _normalized(weights: np.ndarray) -> np.ndarray:
    total = weights.sum(dtype=np.float32)
    return weights * (_f32(1) / total) if abs(total) >= _TINY else np.zeros_like(weights)


def _lanczos(radius: float) -> tuple[Callable[[np.ndarray], np.ndarray], float]:
    pi, r = _f32(np.pi), _f32(radius)

    # In float32 throughout: where the kernel is 0 but for rounding, infinities take its sign.
    def kernel(x: np.ndarray) -> np.ndarray:
        safe = np.where(x <= 1e-3, _f32(1), x)
        value = r * _sine(pi * safe) * _sine(pi * safe / r) / (pi * pi * safe * safe)
        return np.where(x > radius, _f32(0), np.where(x <= 1e-3, _f32(1), value))

    return kernel, radius


def _sine(x: np.ndarray) -> np.ndarray:
    return np.sin(x.astype(np.float64)).astype(np.float32)


def _gaussian(x: np.ndarray) -> np.ndarray:
    sigma = 0.5  # a third of the radius
    return np.where(x >= 1.5, 0, np.exp(-x * x / (2 * sigma * sigma))).astype(np.float32)


def _box(x: np.ndarray) -> np.ndarray:
    return np.where(x < 0.5, 1, np.where(x == 0.5, 0.5, 0)).astype(np.float32)


def _triangle(x: np.ndarray) -> np.ndarray:
    return np.where(x < 1, 1 - x, 0).astype(np.float32)


def _keys(x: np.ndarray) -> np.ndarray:
    far = ((-0.5 * x + 2.5) * x - 4) * x + 2
    near = ((1.5 * x - 2.5) * x) * x + 1
    return np.where(x >= 2, 0, np.where(x >= 1, far, near)).astype(np.float32)


def _mitchell(x: np.ndarray) -> np.ndarray:
    far = ((-7 / 18 * x + 2) * x - 10 / 3) * x + 16 / 9
    near = ((7 / 6 * x - 2) * x) * x + 8 / 9
    return np.where(x >= 2, 0, np.where(x >= 1, far, near)).astype(np.float32)


#: Name of a kernel -> the kernel as a function of distances, and its radius.
_KERNELS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], float]] = {
    "lanczos1": _lanczos(1.0),
    "lanczos3": _lanczos(3.0),
    "lanczos5": _lanczos(5.0),
    "gaussian": (_gaussian, 1.5),
    "box": (_box, 1.0),
    "triangle": (_triangle, 1.0),
    "keyscubic": (_keys, 2.0),
    "mitchellcubic": (_mitchell, 2.0),
}
