"""Conversions between element types, as XLA defines them."""

from __future__ import annotations

from typing import Any

from polyblocks.stablehlo import code
from polyblocks.stablehlo.code import emit
from polyblocks.stablehlo.element import F32, Element


def convert(x: Any, source: Element, target: Element) -> Any:
    """A scalar as another element type.

    Floats become the nearest integer towards zero; what is out of range saturates, NaN becomes 0.
    """
    if source == target:
        return x
    if source.is_complex:
        re, im = code.parts(x)
        if target.is_bool:
            return code.either(convert(re, source.part, target), convert(im, source.part, target))
        if not target.is_complex:
            return convert(re, source.part, target)
        return code.join(
            convert(re, source.part, target.part), convert(im, source.part, target.part)
        )
    if target.is_complex:
        part = target.part
        return code.join(convert(x, source, part), code.constant(part, 0))
    if target.is_bool:
        zero = code.constant(source, 0)
        if source.is_float:
            return code.compare_float("une", x, zero)
        return code.compare_int("ne", x, zero)
    if source.is_float:
        return _from_float(x, source, target)
    if target.is_float:
        if target.width < F32.width:
            # There are no instructions for it; 24 bits first are what everybody else has, too.
            return convert(convert(x, source, F32), F32, target)
        return emit("arith.uitofp" if source.is_unsigned else "arith.sitofp", [x], target.type)
    if source.width < target.width:
        return emit("arith.extui" if source.is_unsigned else "arith.extsi", [x], target.type)
    if source.width > target.width:
        return emit("arith.trunci", [x], target.type)
    return x


def _from_float(x: Any, source: Element, target: Element) -> Any:
    if target.is_float:
        if source.width == target.width:
            return convert(convert(x, source, F32), F32, target)
        return emit(
            "arith.extf" if source.width < target.width else "arith.truncf", [x], target.type
        )
    if source.width < F32.width:
        # Wide enough for every limit.
        x, source = convert(x, source, F32), F32
    # Both limits are powers of two, or zero: exact. The conversion of what lies beyond has no
    # defined value, and is not chosen.
    number = emit("arith.fptoui" if target.is_unsigned else "arith.fptosi", [x], target.type)
    high = code.compare_float("oge", x, code.constant(source, float(target.highest + 1)))
    low = code.compare_float("ole", x, code.constant(source, float(target.lowest)))
    number = code.select(high, code.constant(target, target.highest), number)
    number = code.select(low, code.constant(target, target.lowest), number)
    return code.select(code.is_nan(x), code.constant(target, 0), number)
