"""Sizes of element types in memory, and their zeros."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

ELEMENT_BYTES = {"i1": 1, "i8": 1, "i16": 2, "f16": 2, "bf16": 2, "i32": 4, "f32": 4}


@lru_cache(maxsize=256)
def printed(handle: Any) -> str:
    """An MLIR type or attribute as text, ``f32``; asked for often, and printed once.

    Cached entries keep the context alive: a compilation ends with ``cache_clear``.
    """
    return str(handle)


def element_bytes(type_: Any) -> int:
    """Bytes that one element of an MLIR type takes in memory."""
    text = printed(type_)
    if text.startswith("complex"):
        return 2 * element_bytes(text[8:-1])
    return ELEMENT_BYTES.get(text, 8)


def zero_of(type_: Any) -> Any:
    """The attribute of an integer or floating-point type's (positive) zero."""
    from polyblocks.mlir import ir

    is_float = isinstance(type_, ir.FloatType)
    return ir.FloatAttr.get(type_, 0.0) if is_float else ir.IntegerAttr.get(type_, 0)
