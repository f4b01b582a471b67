"""Error-free transformations: sums and products with their rounding errors.

Sources: D. Knuth, TAOCP vol. 2, 4.2.2 (two_sum); T. J. Dekker, Numer. Math. 18 (1971)
(fast_two_sum, splitting). All need round-to-nearest and no reassociation.
"""

from __future__ import annotations

from polyblocks.codegen.builder import Builder, Val

#: 2^ceil(p/2) + 1, splits a significand of p bits in two halves.
_SPLITTER = {"f32": 4097.0, "f64": 134217729.0}


def two_sum(x: Val, y: Val) -> tuple[Val, Val]:
    """``x + y = s + e`` exactly, ``s`` the rounded sum; any magnitudes."""
    s = x + y
    z = s - x
    return s, (x - (s - z)) + (y - z)


def fast_two_sum(x: Val, y: Val) -> tuple[Val, Val]:
    """As `two_sum`, for ``|x| >= |y|`` or ``x == 0``."""
    s = x + y
    return s, y - (s - x)


def two_product(b: Builder, x: Val, y: Val) -> tuple[Val, Val]:
    """``x * y = p + e`` exactly, unless it underflows.

    Without fused multiply-add neither factor may exceed 2^996 (float64) in magnitude.
    """
    p = x * y
    if b.has_fma:
        return p, b.fma(x, y, -p)
    x_high, x_low = _split(x)
    y_high, y_low = _split(y) if y is not x else (x_high, x_low)
    error = x_high * y_high - p + x_high * y_low + x_low * y_high + x_low * y_low
    return p, error


def _split(x: Val) -> tuple[Val, Val]:
    scaled = x * _SPLITTER[x.kind]
    high = scaled - (scaled - x)
    return high, x - high


def clear_low_half(x: Val) -> Val:
    """``x`` with the lower half of its significand cleared, so that its square is exact."""
    mask = ~0xFFF if x.kind == "f32" else ~0xFFFFFFFF
    return (x.bits() & mask).as_float()
