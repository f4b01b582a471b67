"""expand-half-conversions: f16 to f32 and back for chips without such an instruction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.codegen.builder import Builder, Val
from polyblocks.codegen.rewrite import element, expand_ops

#: Bits of binary32 that binary16 lacks in the fraction, and the difference of the biases.
_SHIFT = 13
_REBIAS = (127 - 15) << 23


@dataclass(frozen=True)
class ExpandHalfConversionsPass:
    """Convert between IEEE-754 binary16 and binary32 with integer operations; exact, NaN quiet.

    The conversion to f16 rounds to nearest even; the scheme is F. Giesen's ("float->half
    variants", 2012): a subnormal result falls out of one addition of a float with the right
    exponent.

    Before::

        %f = arith.extf %h : f16 to f32

    After::

        %bits = arith.bitcast %h : f16 to i16
        ...
        %f = arith.bitcast %wide : i32 to f32
    """

    name: ClassVar[str] = "expand-half-conversions"

    def run(self, module: Any, context: Any) -> None:
        """Rewrite the module in place."""
        del context
        expand_ops(module, {"arith.extf": _extend, "arith.truncf": _truncate})


def _extend(b: Builder, op: Any, operands: Sequence[Val]) -> Sequence[Val] | None:
    (half,) = operands
    if half.kind != "f16" or element(op.results[0].type) != "f32":
        return None
    bits = b.op("arith.bitcast", "i16", half).zext("i32")
    magnitude = (bits & 0x7FFF) << _SHIFT
    exponent = magnitude & (0x7C00 << _SHIFT)
    normal = magnitude + _REBIAS
    special = normal + ((128 - 16) << 23)
    # 2**-14 + fraction * 2**-24, less 2**-14.
    subnormal = ((normal + (1 << 23)).as_float() - 2.0**-14).bits()
    wide = b.select(exponent.eq(0x7C00 << _SHIFT), special, normal)
    wide = b.select(exponent.eq(0), subnormal, wide)
    return ((wide | ((bits & 0x8000) << 16)).as_float(),)


def _truncate(b: Builder, op: Any, operands: Sequence[Val]) -> Sequence[Val] | None:
    (single,) = operands
    if single.kind != "f32" or element(op.results[0].type) != "f16":
        return None
    bits = single.bits()
    magnitude = bits & 0x7FFFFFFF
    infinity, quiet_nan = b.const("i32", 0x7C00), b.const("i32", 0x7E00)
    special = b.select(magnitude > 0x7F800000, quiet_nan, infinity)
    # Adding 0.5 leaves the fraction of the subnormal, rounded, in the lowest bits.
    subnormal = (magnitude.as_float() + 0.5).bits() - 0x3F000000
    odd = magnitude.shr_u(_SHIFT) & 1
    normal = (magnitude - _REBIAS + 0xFFF + odd).shr_u(_SHIFT)
    half = b.select(magnitude < (113 << 23), subnormal, normal)
    half = b.select(magnitude >= (143 << 23), special, half)
    signed = half | (bits.shr_u(16) & 0x8000)
    return (b.op("arith.bitcast", "f16", signed.to("i16")),)
