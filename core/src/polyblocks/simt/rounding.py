"""Roundings that NumPy does not have: bfloat16 and fused multiply-add."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from polyblocks.simt.types import Array

_HIDDEN = {"f32": 29, "f16": 42, "bf16": 45}
#: Smallest normal number of each type.
_NORMAL = {"f32": 2.0**-126, "f16": 2.0**-14, "bf16": 2.0**-126}


def to_bf16(value: Array) -> Array:
    """Round float32 or float64 to the nearest bf16 (ties to even), held as float32."""
    if value.dtype == np.float64:
        value = _odd_float32(value)
    elif value.dtype != np.float32:
        value = value.astype(np.float32)
    bits = value.view(np.uint32)
    lowest = (bits >> np.uint32(16)) & np.uint32(1)
    rounded = (bits + np.uint32(0x7FFF) + lowest) & np.uint32(0xFFFF0000)
    quiet = (bits & np.uint32(0xFFFF0000)) | np.uint32(0x00400000)
    return np.where(np.isnan(value), quiet, rounded).view(np.float32)


def convert(value: Array, name: str) -> Array:
    """Round a float array to the float type of this name."""
    if name == "bf16":
        return to_bf16(value)
    return value.astype({"f16": np.float16, "f32": np.float32, "f64": np.float64}[name], copy=False)


def _odd_float32(value: Array) -> Array:
    """Round float64 to float32 by rounding to odd, which a second rounding cannot spoil."""
    near = value.astype(np.float32)
    back = near.astype(np.float64)
    inexact = (back != value) & np.isfinite(value) & np.isfinite(near)
    down = np.where(np.abs(back) > np.abs(value), np.nextafter(near, np.float32(0)), near)
    odd = (down.view(np.uint32) | np.uint32(1)).view(np.float32)
    return np.where(inexact, odd, near)


def _odd_sum(a: Array, b: Array) -> Array:
    """float64 sum rounded to odd."""
    total = a + b
    part = total - a
    error = (a - (total - part)) + (b - part)
    inexact = (error != 0) & np.isfinite(total) & np.isfinite(error)
    beyond = np.signbit(error) != np.signbit(total)
    down = np.where(beyond, np.nextafter(total, 0.0), total)
    odd = (down.view(np.uint64) | np.uint64(1)).view(np.float64)
    return np.where(inexact, odd, total)


def fma(a: Array, b: Array, c: Array, name: str) -> Array:
    """``a * b + c`` with one rounding, in the float type of this name."""
    if name == "f64":
        return _fma64(a, b, c)
    # The product of two numbers of at most 24 bits is exact in 53.
    x, y, z = a.astype(np.float64), b.astype(np.float64), c.astype(np.float64)
    total = x * y + z
    # A second rounding errs only from the middle between two numbers, or among subnormals.
    hidden = np.uint64((1 << _HIDDEN[name]) - 1)
    middle = np.uint64(1 << (_HIDDEN[name] - 1))
    doubtful = (total.view(np.uint64) & hidden) == middle
    doubtful |= (np.abs(total) < _NORMAL[name]) & (total != 0)
    if doubtful.any():
        total = np.where(doubtful, _odd_sum(x * y, z), total)
    return convert(total, name)


def _split(a: Array) -> tuple[Array, Array]:
    scaled = a * 134217729.0
    high = scaled - (scaled - a)
    return high, a - high


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _fma64(a: Array, b: Array, c: Array) -> Array:
    """Boldo and Melquiond, "Emulation of FMA and correctly rounded sums" (IEEE TC 57(4), 2008)."""
    a, b, c = np.broadcast_arrays(a, b, c)
    high = a * b
    (ah, al), (bh, bl) = _split(a), _split(b)
    low = ((ah * bh - high) + ah * bl + al * bh) + al * bl
    th, tl = _two_sum(c, low)
    vh, vl = _two_sum(high, th)
    result = vh + _odd_sum(tl, vl)
    # The error-free steps hold away from overflow and underflow only.
    sizes = np.abs(np.stack([a, b, c, high]))
    risky = ((sizes > 2.0**960) | ((sizes < 2.0**-900) & (sizes != 0))).any(axis=0)
    risky |= (high == 0) & (a != 0) & (b != 0)
    finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    result = np.where(finite, result, a * b + c)
    slow = np.argwhere(risky & finite)
    if len(slow):
        result = result.copy()
        for where in map(tuple, slow):
            result[where] = _exact(float(a[where]), float(b[where]), float(c[where]))
    # The sign of an exact zero follows the usual rule, which the sum of the parts may lose.
    return np.where(finite & (result == 0) & ~risky, a * b + c, result)


def _exact(a: float, b: float, c: float) -> float:
    value = Fraction(a) * Fraction(b) + Fraction(c)
    if value == 0:
        return a * b + c if a * b == 0 else 0.0
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
