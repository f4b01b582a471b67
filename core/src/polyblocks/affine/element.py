"""Sizes of element types in memory."""

from __future__ import annotations

from typing import Any

ELEMENT_BYTES = {"i1": 1, "i8": 1, "i16": 2, "f16": 2, "bf16": 2, "i32": 4, "f32": 4}


def element_bytes(type_: Any) -> int:
    """Bytes that one element of an MLIR type takes in memory."""
    text = str(type_)
    if text.startswith("complex"):
        return 2 * element_bytes(text[8:-1])
    return ELEMENT_BYTES.get(text, 8)
