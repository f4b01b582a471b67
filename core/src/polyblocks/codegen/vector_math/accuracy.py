"""Documented maximum errors of the expansions, in units in the last place of the exact result.

The unit tests hold the code to this table, and docs/numerics.md to it as well. float16 and
bfloat16 compute in float32 and round once more: 0.51 ULP for all but the last bits of ties.
"""

from __future__ import annotations

#: Operation -> (float32, float64); with and without fused multiply-add.
MAX_ULP: dict[str, tuple[float, float]] = {
    "math.exp": (1.1, 1.1),
    "math.exp2": (1.4, 1.4),
    "math.expm1": (1.5, 1.5),
    "math.log": (1.0, 1.0),
    "math.log2": (2.0, 1.0),
    "math.log10": (2.0, 1.0),
    "math.log1p": (1.0, 1.0),
    "math.sin": (1.6, 0.9),
    "math.cos": (1.6, 0.9),
    "math.tan": (2.1, 1.3),
    "math.asin": (1.0, 1.0),
    "math.acos": (1.0, 1.0),
    "math.atan": (1.0, 1.0),
    "math.atan2": (1.8, 1.6),
    "math.sinh": (1.8, 1.8),
    "math.cosh": (1.6, 1.6),
    "math.tanh": (2.1, 1.5),
    "math.asinh": (2.0, 2.0),
    "math.acosh": (2.2, 2.2),
    "math.atanh": (2.0, 2.0),
    "math.erf": (1.7, 1.8),
    "math.erfc": (3.0, 3.0),
    "math.powf": (0.6, 1.0),
    "math.fpowi": (0.6, 1.0),
    "math.cbrt": (0.6, 0.8),
    "math.rsqrt": (1.5, 1.5),
}
