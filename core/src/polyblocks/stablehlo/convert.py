"""Conversions between element types, as XLA defines them."""

from __future__ import annotations

from typing import Any

from polyblocks.stablehlo import code
from polyblocks.stablehlo.code import emit
from polyblocks.stablehlo.element import F32, Element


def convert(x: Any, source: Element, target: Element, wraps: bool = False) -> Any:
    """A scalar as another element type.

    Floats become the nearest integer towards zero.

    Args:
        x: the scalar.
        source: its element type.
        target: the other one.
        wraps: what becomes of floats that are out of range. By default they saturate, and NaN
            becomes 0, as XLA has it. Otherwise they and NaN are the lowest integer of 32 or 64
            bits, which saturates to narrower ones, and negative numbers wrap around in unsigned
            integers of as many bits, as vector conversions of CPUs do.
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
    if source.is_float and target.is_integer and wraps:
        return _wrapping(x, source, target)
    if source.is_float:
        return _from_float(x, source, target)
    if target.is_float:
        if target.width < F32.width:
            # There are no instructions for it; other compilers round to 24 bits first, too.
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


def _wrapping(x: Any, source: Element, target: Element) -> Any:
    if source.width < F32.width:
        x, source = convert(x, source, F32), F32
    width = max(target.width, 32)
    signed = Element(f"i{width}")
    lowest = code.constant(signed, signed.lowest)
    number = emit("arith.fptosi", [x], signed.type)
    if width < 64 and source.width == 64:
        # Numbers between the lowest integer and the next lower one are truncated to it.
        low = code.compare_float("ogt", x, code.constant(source, float(signed.lowest - 1)))
    else:
        low = code.compare_float("oge", x, code.constant(source, float(signed.lowest)))
    high = code.compare_float("olt", x, code.constant(source, float(signed.highest + 1)))
    number = code.select(code.both(low, high), number, lowest)
    if target.is_unsigned and width == target.width:
        beyond = emit("arith.fptoui", [x], signed.type)
        fits = code.both(
            code.compare_float("oge", x, code.constant(source, float(signed.highest + 1))),
            code.compare_float("olt", x, code.constant(source, 2.0**width)),
        )
        return code.select(fits, beyond, number)
    if width == target.width:
        return number
    number = emit("arith.maxsi", [number, code.constant(signed, target.lowest)])
    number = emit("arith.minsi", [number, code.constant(signed, target.highest)])
    return emit("arith.trunci", [number], target.type)
