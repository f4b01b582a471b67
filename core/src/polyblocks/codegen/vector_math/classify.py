"""isnan, isinf, isfinite, isnormal and clampf, for which not every lowering exists upstream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyblocks.codegen.builder import Builder, Val
from polyblocks.codegen.vector_math.formats import INFINITY

_SMALLEST_NORMAL = {"f16": 2.0**-14, "bf16": 2.0**-126, "f32": 2.0**-126, "f64": 2.0**-1022}


def classify(b: Builder, operation: Any, operands: Sequence[Val]) -> Sequence[Val]:
    """``i1`` of math.isnan, isinf, isfinite or isnormal."""
    (x,) = operands
    smallest_normal = _SMALLEST_NORMAL[x.kind]
    if x.kind in ("f16", "bf16"):
        x = x.to("f32")
    magnitude = abs(x)
    name = operation.name.removeprefix("math.")
    if name == "isnan":
        return [x.is_nan()]
    if name == "isinf":
        return [magnitude.eq(INFINITY)]
    finite = magnitude < INFINITY
    return [finite if name == "isfinite" else finite & (magnitude >= smallest_normal)]


def clampf(b: Builder, operation: Any, operands: Sequence[Val]) -> Sequence[Val]:
    """math.clampf: ``maximum(minimum(x, high), low)``; NaN stays NaN."""
    x, low, high = operands
    return [b.op("arith.maximumf", x.kind, b.op("arith.minimumf", x.kind, x, high), low)]
