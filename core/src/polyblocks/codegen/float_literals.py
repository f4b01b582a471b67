"""Floating-point literals of new LLVM IR, spelt so that older LLVM parsers read them.

Newer LLVM prints the shortest decimal that round-trips in the literal's own type, ``f0x`` with
the bit pattern otherwise, and ``+inf``, ``+qnan``, ``+nan(0x..)``. Parsers up to LLVM 22 take
decimals only when they are exact, and bit patterns as a double (``0x``, also for float), a half
(``0xH``) or a bfloat (``0xR``). Every literal is rewritten to such a bit pattern.
"""

from __future__ import annotations

import re
import struct
from functools import lru_cache

_TOKEN = re.compile(
    r'(?P<skip>"[^"\n]*"|;[^\n]*)'
    r"|(?<![\w.@%$-])(?P<type>half|bfloat|float|double)\b"
    r"|(?<![\w.@%$+-])(?P<literal>f0x[0-9A-Fa-f]+|[-+]?\d+\.\d*(?:[eE][-+]?\d+)?"
    r"|[-+](?:inf|qnan|s?nan\(0x[0-9A-Fa-f]+\)))(?![\w.])"
)

#: Lines that may hold a literal. Most hold none, and this is four times quicker than the rewriting.
_CANDIDATE = re.compile(r"\d\.\d|f0x|[-+][iqns]")

#: Bits of exponent and mantissa.
_LAYOUT = {"half": (5, 10), "bfloat": (8, 7), "float": (8, 23), "double": (11, 52)}


def rewrite_float_literals(text: str) -> str:
    """LLVM IR with all floating-point literals as bit patterns that LLVM 22 accepts.

    A literal has the type whose name stands last before it on its line; that is how LLVM IR is
    written.
    """
    return "\n".join(
        _rewrite_line(line) if _may_hold_literal(line) else line for line in text.split("\n")
    )


def _may_hold_literal(line: str) -> bool:
    # One of these is in every literal, and in few other lines; to look for them is quicker yet.
    if "." in line or "f0x" in line or "+" in line or "-" in line:
        return _CANDIDATE.search(line) is not None
    return False


def _rewrite_line(line: str) -> str:
    current = "double"

    def replace(match: re.Match[str]) -> str:
        nonlocal current
        if match["type"]:
            current = match["type"]
        literal = match["literal"]
        return _old_spelling(current, literal) if literal else match[0]

    return _TOKEN.sub(replace, line)


#: A program has the same coefficients of elementary functions in many places.
@lru_cache(maxsize=4096)
def _old_spelling(type_: str, literal: str) -> str:
    bits = _bits(type_, literal)
    if type_ == "half":
        return f"0xH{bits:04X}"
    if type_ == "bfloat":
        return f"0xR{bits:04X}"
    if type_ == "float":
        bits = _float_bits_as_double(bits)
    return f"0x{bits:016X}"


def _bits(type_: str, literal: str) -> int:
    exponent, mantissa = _LAYOUT[type_]
    if literal.startswith("f0x"):
        return int(literal[3:], 16)
    if literal[-1].isdigit() or literal[-1] == ".":
        return _decimal_bits(type_, float(literal))
    bits = ((1 << exponent) - 1) << mantissa
    if literal[1:] == "qnan":
        bits |= 1 << (mantissa - 1)
    elif literal[1:] != "inf":
        bits |= int(literal[literal.index("0x") + 2 : -1], 16)
        if not literal.startswith("s", 1):
            bits |= 1 << (mantissa - 1)
    return bits | (literal[0] == "-") << (exponent + mantissa)


def _decimal_bits(type_: str, value: float) -> int:
    if type_ == "bfloat":
        bits = int(struct.unpack("<I", struct.pack("<f", value))[0])
        return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    code, integer = {"half": ("<e", "<H"), "float": ("<f", "<I"), "double": ("<d", "<Q")}[type_]
    return int(struct.unpack(integer, struct.pack(code, value))[0])


def _float_bits_as_double(bits: int) -> int:
    """The double with the value of a float; NaN payloads shift along."""
    if bits >> 23 & 0xFF == 0xFF:
        return (bits >> 31) << 63 | 0x7FF << 52 | (bits & 0x7FFFFF) << 29
    value = struct.unpack("<f", struct.pack("<I", bits))[0]
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])
