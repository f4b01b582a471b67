"""Numbers of LLVM IR as bits."""

from __future__ import annotations

import re
import struct

import numpy as np

from polyblocks.simt.rounding import to_bf16
from polyblocks.simt.types import Float, Int, Type

_BYTES = {"f16": "e", "f32": "f", "f64": "d"}
_ESCAPE = re.compile(r"\\([0-9A-Fa-f]{2})")
_WHOLE = re.compile(r"-?\d+")
_DECIMAL = re.compile(r"-?\d+(?:\.\d*)?(?:e[-+]?\d+)?")
#: Words that stand for a number.
WORDS = {"true": 1, "false": 0}


def bits_of(token: str, type_: Type) -> int | None:
    """The bits of a number, as an unsigned integer; None for other tokens.

    Args:
        token: e.g. ``-1``, ``true``, ``1.0e+00``, ``0x7FF0000000000000`` (the bits of a float64,
            whatever the type), ``0xH3C00`` (of a float16), ``0xR3F80`` (of a bfloat16).
        type_: an integer or float type.
    """
    if isinstance(type_, Int):
        number = WORDS.get(token)
        if number is None:
            if not _WHOLE.fullmatch(token):
                return None
            number = int(token)
        return number & ((1 << type_.bits) - 1)
    if not isinstance(type_, Float):
        return None
    if token.startswith(("0xH", "0xR")):
        return int(token[3:], 16)
    if token.startswith("0x"):
        return _narrowed(int(token, 16), type_.name)
    if not _DECIMAL.fullmatch(token):
        return None
    return _narrowed(int.from_bytes(struct.pack("<d", float(token)), "little"), type_.name)


def _narrowed(bits: int, name: str) -> int:
    """The bits of a float64 as those of a type, rounded to nearest.

    Decimal numbers of LLVM need not be those of the type: they are its nearest ones.
    """
    if name == "f64":
        return bits
    sign, exponent, rest = bits >> 63, bits >> 52 & 0x7FF, bits & ((1 << 52) - 1)
    if exponent == 0x7FF:
        width, mantissa = {"f16": (16, 10), "bf16": (16, 7), "f32": (32, 23)}[name]
        top = (1 << (width - 1)) - (1 << mantissa)
        return sign << (width - 1) | top | rest >> (52 - mantissa)
    (value,) = struct.unpack("<d", bits.to_bytes(8, "little"))
    if name == "bf16":
        return int(to_bf16(np.array(value)).view(np.uint32)) >> 16
    code = _BYTES[name]
    return int.from_bytes(struct.pack(f"<{code}", value), "little")


def string_bytes(token: str) -> bytes:
    """The bytes of a string: ``c"a\\00"`` or without the ``c``."""
    inside = token[token.index('"') + 1 : -1]
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), inside).encode("latin-1")


def spelled_number(bits: int, type_: Type) -> str:
    """Bits as an attribute of MLIR, without its type."""
    if isinstance(type_, Int):
        if type_.bits == 1:
            return "true" if bits else "false"
        return str(bits - (1 << type_.bits) if bits >> (type_.bits - 1) else bits)
    assert isinstance(type_, Float)
    width = {"f16": 4, "bf16": 4, "f32": 8, "f64": 16}[type_.name]
    return f"0x{bits:0{width}X}"
