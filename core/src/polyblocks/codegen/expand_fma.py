"""expand-fma: fused multiply-add for chips without such an instruction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.codegen.builder import Builder, Val
from polyblocks.codegen.rewrite import expand_ops

#: 2**27 + 1 splits a double into two halves of 26 bits (Veltkamp; Dekker 1971).
_SPLITTER = 134217729.0


@dataclass(frozen=True)
class ExpandFmaPass:
    """``math.fma`` without a library call.

    f32 computes in f64, where the product is exact. f64 adds the exact error of the product
    (Dekker, "A floating-point technique for extending the available precision", 1971) and of the
    sum (Knuth): the result is within 1 ULP of the fused one for operands below 2**970.

    Before::

        %r = math.fma %a, %b, %c : f32

    After::

        %p = arith.mulf %a64, %b64 : f64
        %s = arith.addf %p, %c64 : f64
        %r = arith.truncf %s : f64 to f32
    """

    name: ClassVar[str] = "expand-fma"

    def run(self, module: Any, context: Any) -> None:
        """Rewrite the module in place."""
        del context
        expand_ops(module, {"math.fma": _expand})


def _expand(b: Builder, op: Any, operands: Sequence[Val]) -> Sequence[Val] | None:
    x, y, z = operands
    if x.kind == "f32":
        return ((x.to("f64") * y.to("f64") + z.to("f64")).to("f32"),)
    if x.kind != "f64":
        return None
    product = x * y
    x_high, x_low = _split(x)
    y_high, y_low = _split(y)
    error = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low
    total = product + z
    back = total - product
    rest = (product - (total - back)) + (z - back)
    corrected = total + (rest + error)
    # Splitting an infinity, or a number near the largest, makes NaN.
    return (b.select(corrected.is_nan(), total, corrected),)


def _split(x: Val) -> tuple[Val, Val]:
    scaled = x * _SPLITTER
    high = scaled - (scaled - x)
    return high, x - high
