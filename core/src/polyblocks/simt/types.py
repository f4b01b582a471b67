"""Types of the LLVM dialect: how a value is held in lanes and how it lies in memory.

A scalar is an array of shape ``(lanes,)``, a vector of n elements one of shape ``(n, lanes)``, a
struct or an array a tuple of values. The last axis may have length 1 where all lanes agree.
Integers are held sign-extended in the next NumPy width (i1 as bool), bf16 as float32 whose values
are all bf16 values, pointers as int64.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyblocks.errors import UnsupportedError

Array = np.ndarray[Any, Any]
#: An array, or a tuple of values (a struct).
Value = Any


@dataclass(frozen=True)
class Int:
    bits: int


@dataclass(frozen=True)
class Float:
    name: str


@dataclass(frozen=True)
class Pointer:
    space: int


@dataclass(frozen=True)
class Vector:
    count: int
    element: Type


@dataclass(frozen=True)
class Sequence:
    """``!llvm.array``."""

    count: int
    element: Type


@dataclass(frozen=True)
class Struct:
    fields: tuple[Type, ...]
    packed: bool


@dataclass(frozen=True)
class Opaque:
    """A type whose values only ops of the target look into."""

    text: str


Type = Int | Float | Pointer | Vector | Sequence | Struct | Opaque

_FLOAT_BYTES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8}
_FLOAT_DTYPE = {"f16": np.float16, "bf16": np.float32, "f32": np.float32, "f64": np.float64}
#: Unsigned words by size in bytes.
WORDS: Mapping[int, Any] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def read_type(type_: Any) -> Type:
    """The type behind an MLIR type object."""
    from polyblocks.mlir import dialect, ir

    llvm = dialect("llvm")
    if isinstance(type_, ir.IntegerType):
        return Int(type_.width)
    if isinstance(type_, llvm.PointerType):
        return Pointer(type_.address_space)
    if isinstance(type_, ir.VectorType) and len(type_.shape) == 1 and not any(type_.scalable_dims):
        return Vector(type_.shape[0], read_type(type_.element_type))
    if isinstance(type_, llvm.ArrayType):
        return Sequence(type_.num_elements, read_type(type_.element_type))
    if isinstance(type_, llvm.StructType) and not type_.opaque:
        return Struct(tuple(read_type(t) for t in type_.body), type_.packed)
    text = str(type_)
    return Float(text) if text in _FLOAT_BYTES else Opaque(text)


def scalar_of(type_: Type) -> Type:
    """The element type of a vector, else the type itself."""
    return type_.element if isinstance(type_, Vector) else type_


def container_bits(bits: int) -> int:
    """Width of the NumPy integer that holds ``bits`` bits.

    Raises:
        UnsupportedError: more than 64 bits.
    """
    for width in (8, 16, 32, 64):
        if bits <= width:
            return width
    raise UnsupportedError(f"the simulator holds integers of 1 to 64 bits, not i{bits}")


def dtype_of(type_: Type) -> Any:
    """The NumPy dtype that holds a scalar in lanes.

    Raises:
        UnsupportedError: no scalar, or one that the simulator does not hold.
    """
    if isinstance(type_, Int):
        return np.dtype(bool if type_.bits == 1 else f"int{container_bits(type_.bits)}")
    if isinstance(type_, Float):
        return np.dtype(_FLOAT_DTYPE[type_.name])
    if isinstance(type_, Pointer):
        return np.dtype(np.int64)
    raise UnsupportedError(f"the simulator holds no scalar of type {type_}")


class Layout:
    """Sizes and alignments in bytes, by the rules of LLVM's default data layout.

    Args:
        pointer_bytes: by address space; 8 where not named.
    """

    def __init__(self, pointer_bytes: Mapping[int, int] | None = None) -> None:
        self.pointer_bytes = dict(pointer_bytes or {})

    def size(self, type_: Type) -> int:
        """Bytes that a store of this type writes, without the padding after it.

        Raises:
            UnsupportedError: a type without a size.
        """
        if isinstance(type_, Int):
            return container_bits(type_.bits) // 8
        if isinstance(type_, Float):
            return _FLOAT_BYTES[type_.name]
        if isinstance(type_, Pointer):
            return self.pointer_bytes.get(type_.space, 8)
        if isinstance(type_, Vector):
            if type_.element == Int(1):
                raise UnsupportedError("the simulator keeps no vector of i1 in memory")
            return type_.count * self.size(type_.element)
        if isinstance(type_, Sequence):
            return type_.count * self.stride(type_.element)
        if isinstance(type_, Struct):
            offsets = self.offsets(type_)
            end = offsets[-1] + self.size(type_.fields[-1]) if offsets else 0
            return end if type_.packed else _round_up(end, self.alignment(type_))
        raise UnsupportedError(f"the simulator knows no size of type {type_}")

    def alignment(self, type_: Type) -> int:
        """The ABI alignment."""
        if isinstance(type_, Vector):
            size = self.size(type_)
            return 1 << (size - 1).bit_length()
        if isinstance(type_, Sequence):
            return self.alignment(type_.element)
        if isinstance(type_, Struct):
            if type_.packed:
                return 1
            return max((self.alignment(t) for t in type_.fields), default=1)
        return self.size(type_)

    def stride(self, type_: Type) -> int:
        """Bytes from one element of an array to the next."""
        return _round_up(self.size(type_), self.alignment(type_))

    def offsets(self, type_: Struct) -> list[int]:
        """Offset of each field of a struct."""
        found, end = [], 0
        for t in type_.fields:
            start = end if type_.packed else _round_up(end, self.alignment(t))
            found.append(start)
            end = start + self.size(t)
        return found

    def leaves(self, type_: Type, offset: int = 0) -> list[tuple[int, Type]]:
        """(offset, scalar or vector type) of everything in an aggregate, in order."""
        if isinstance(type_, Struct):
            pairs = zip(self.offsets(type_), type_.fields, strict=True)
            return [leaf for at, t in pairs for leaf in self.leaves(t, offset + at)]
        if isinstance(type_, Sequence):
            step = self.stride(type_.element)
            return [
                leaf
                for index in range(type_.count)
                for leaf in self.leaves(type_.element, offset + index * step)
            ]
        return [(offset, type_)]


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def map_value(function: Callable[..., Any], *values: Value) -> Value:
    """Apply a function to the arrays of equally built values."""
    if isinstance(values[0], tuple):
        return tuple(map_value(function, *parts) for parts in zip(*values, strict=True))
    return function(*values)


def zero(type_: Type) -> Value:
    """A value of zeros in which all lanes agree."""
    if isinstance(type_, Struct):
        return tuple(zero(t) for t in type_.fields)
    if isinstance(type_, Sequence):
        return tuple(zero(type_.element) for _ in range(type_.count))
    if isinstance(type_, Vector):
        return np.zeros((type_.count, 1), dtype_of(type_.element))
    if isinstance(type_, Opaque):
        return np.zeros(1, np.int64)
    return np.zeros(1, dtype_of(type_))


def to_words(value: Array, type_: Type, layout: Layout) -> Array:
    """The bits of a scalar or vector as unsigned words, one word per element."""
    scalar = scalar_of(type_)
    word = WORDS[layout.size(scalar)]
    if isinstance(scalar, Float):
        if scalar.name == "bf16":
            return np.asarray(value.view(np.uint32) >> np.uint32(16)).astype(np.uint16)
        return value.view(word)
    if isinstance(scalar, Int) and scalar.bits < container_bits(scalar.bits):
        mask = (1 << scalar.bits) - 1
        return value.astype(word) & word(mask)
    return (
        value.astype(word, copy=False)
        if value.itemsize != np.dtype(word).itemsize
        else (value.view(word))
    )


def from_words(words: Array, type_: Type) -> Array:
    """The inverse of :func:`to_words`."""
    scalar = scalar_of(type_)
    if isinstance(scalar, Float):
        if scalar.name == "bf16":
            return (words.astype(np.uint32) << np.uint32(16)).view(np.float32)
        return words.view(dtype_of(scalar))
    if isinstance(scalar, Int):
        if scalar.bits == 1:
            return (words & words.dtype.type(1)).astype(bool)
        return wrap(words.view(dtype_of(scalar)), scalar.bits)
    return words.astype(np.int64)


def wrap(value: Array, bits: int) -> Array:
    """Sign-extend the low ``bits`` bits inside the container."""
    spare = value.dtype.itemsize * 8 - bits
    if spare == 0 or value.dtype == bool:
        return value
    shift = value.dtype.type(spare)
    return (value << shift) >> shift


def unsigned(value: Array, bits: int) -> Array:
    """The same bits read as an unsigned number."""
    if value.dtype == bool:
        return value.astype(np.uint8)
    words = value.view(WORDS[value.dtype.itemsize])
    if bits == value.dtype.itemsize * 8:
        return words
    return words & words.dtype.type((1 << bits) - 1)


def signed(value: Array, bits: int) -> Array:
    """Bits as a two's complement number in the lanes' container (bool for i1)."""
    if bits == 1:
        return (value & value.dtype.type(1)).astype(bool)
    container = np.dtype(f"int{container_bits(bits)}")
    return wrap(value.astype(container, copy=False), bits)
