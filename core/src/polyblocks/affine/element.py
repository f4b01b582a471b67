"""Element types: their kinds and sizes, and their zeros."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from polyblocks.program import DTYPES as ARRAYS


@dataclass(frozen=True)
class DType:
    """A type of scalars.

    Attributes:
        name: as MLIR prints it.
        kind: ``int``, ``float``, ``index``, or ``other`` (no lane of a vector has such a type).
        bits: of a number; 0 of another type.
        precision: bits of a float's significand, with the leading one; 0 of another type.
    """

    name: str
    kind: str = "other"
    bits: int = 0
    precision: int = 0

    @property
    def array(self) -> str:
        """The name of arrays' dtype for it, of integers the one with a sign; empty for none."""
        return _ARRAYS.get(self.name, "")

    @property
    def is_whole(self) -> bool:
        """Whether its numbers are integers."""
        return self.kind in ("int", "index")

    @property
    def in_vectors(self) -> bool:
        """Whether a wide load or store can be of several: a number that fills its bytes."""
        return self.kind in ("int", "float") and self.bits >= 8

    @property
    def nbytes(self) -> int:
        """Bytes of an element in memory."""
        return -(-self.bits // 8) or 8


I1, I8, I16 = DType("i1", "int", 1), DType("i8", "int", 8), DType("i16", "int", 16)
I32, I64 = DType("i32", "int", 32), DType("i64", "int", 64)
INDEX = DType("index", "index", 64)
F16, BF16 = DType("f16", "float", 16, 11), DType("bf16", "float", 16, 8)
F32, F64 = DType("f32", "float", 32, 24), DType("f64", "float", 64, 53)

#: By the names that MLIR prints.
DTYPES = {t.name: t for t in (I1, I8, I16, I32, I64, INDEX, F16, BF16, F32, F64)}
#: By the names of arrays' dtypes; matrix units have ``tfloat32``, too, which is stored as float32.
ARRAY_DTYPES = {
    **{name: DTYPES[printed] for name, (printed, _) in ARRAYS.items() if printed in DTYPES},
    "tfloat32": F32,
}
#: The first of these names, by what MLIR prints.
_ARRAYS = {dtype.name: name for name, dtype in reversed(ARRAY_DTYPES.items())}


@lru_cache(maxsize=256)
def printed(handle: Any) -> str:
    """An MLIR type or attribute as text, ``f32``; asked for often, and printed once.

    Cached entries keep the context alive: a compilation ends with ``cache_clear``.
    """
    return str(handle)


def dtype_of(type_: Any) -> DType:
    """The type of scalars that an MLIR type is."""
    name = printed(type_)
    return DTYPES.get(name) or DType(name)


def element_bytes(type_: Any) -> int:
    """Bytes that one element of an MLIR type takes in memory."""
    text = printed(type_)
    if text.startswith("complex"):
        return 2 * element_bytes(text[8:-1])
    return dtype_of(type_).nbytes


def zero_of(type_: Any) -> Any:
    """The attribute of an integer or floating-point type's (positive) zero."""
    from polyblocks.mlir import ir

    is_float = isinstance(type_, ir.FloatType)
    return ir.FloatAttr.get(type_, 0.0) if is_float else ir.IntegerAttr.get(type_, 0)


def as_float32(number: float) -> float:
    """The nearest number of 32 bits.

    Raises:
        OverflowError: it is beyond these.
    """
    (rounded,) = struct.unpack("f", struct.pack("f", number))
    return float(rounded)
