"""Constants of the llvm dialect as lane values and as bytes of initialized memory."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from polyblocks.errors import UnsupportedError
from polyblocks.simt.rounding import convert
from polyblocks.simt.types import (
    Array,
    Float,
    Int,
    Layout,
    Sequence,
    Struct,
    Type,
    Value,
    Vector,
    dtype_of,
    from_words,
    signed,
    to_words,
    zero,
)

_NUMBER = re.compile(r"0x[0-9A-Fa-f]+|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false")


def constant_value(attribute: Any, type_: Type) -> Value:
    """The value of ``llvm.mlir.constant``, the same in all lanes.

    Raises:
        UnsupportedError: an attribute that is no number, vector or array of numbers.
    """
    from polyblocks.mlir import ir

    if isinstance(attribute, ir.ArrayAttr):
        fields = type_.fields if isinstance(type_, Struct) else None
        if fields is None and isinstance(type_, Sequence):
            fields = (type_.element,) * type_.count
        if fields is None:
            raise UnsupportedError(f"the simulator reads no constant {attribute} of type {type_}")
        return tuple(constant_value(a, t) for a, t in zip(attribute, fields, strict=True))
    if isinstance(type_, (Vector, Sequence)):
        flat = _elements(attribute, _innermost(type_))
        return _shape(flat, type_)
    return _scalars([_number(attribute)], type_)


def _shape(flat: Array, type_: Type) -> Value:
    """A flat array of elements as the value of a nested type."""
    if isinstance(type_, Vector):
        return np.broadcast_to(flat.reshape(-1, 1), (type_.count, 1))
    if isinstance(type_, Sequence):
        if len(flat) == 1:
            return tuple(_shape(flat, type_.element) for _ in range(type_.count))
        parts = flat.reshape(type_.count, -1)
        return tuple(_shape(part, type_.element) for part in parts)
    return flat[:1]


def _innermost(type_: Type) -> Type:
    while isinstance(type_, (Vector, Sequence)):
        type_ = type_.element
    return type_


def _number(attribute: Any) -> int | float | str:
    from polyblocks.mlir import ir

    if isinstance(attribute, (ir.IntegerAttr, ir.BoolAttr)):
        return int(attribute.value)
    if isinstance(attribute, ir.FloatAttr):
        text = str(attribute)
        # A NaN keeps its payload only as text.
        return text.split()[0] if text.startswith("0x") else float(attribute.value)
    raise UnsupportedError(f"the simulator reads no constant {attribute}")


def _scalars(numbers: list[int | float | str], type_: Type) -> Array:
    if isinstance(type_, Float):
        word = np.dtype(f"uint{ {'f16': 16, 'bf16': 16, 'f32': 32, 'f64': 64}[type_.name] }")
        if all(isinstance(n, str) for n in numbers):
            return from_words(np.array([int(str(n), 16) for n in numbers], word), type_)
        values = [
            float(from_words(np.array([int(n, 16)], word), type_)[0]) if isinstance(n, str) else n
            for n in numbers
        ]
        # Decimals of a text are near the type's numbers.
        return convert(np.array(values, np.float64), type_.name)
    if isinstance(type_, Int):
        raw = np.array([int(n) & ((1 << 64) - 1) for n in numbers], np.uint64)
        return signed(raw.view(np.int64), type_.bits)
    return np.array([int(n) for n in numbers], np.int64)


def _elements(attribute: Any, type_: Type) -> Array:
    """The elements of a dense attribute in order; one element for a splat."""
    from polyblocks.mlir import ir

    if getattr(attribute, "is_splat", False):
        return _scalars([_number(attribute.get_splat_value())], type_)
    if isinstance(attribute, ir.StringAttr):
        raw = np.frombuffer(attribute.value_bytes, np.uint8).view(np.int8)
        return raw
    plain = not (isinstance(type_, Float) and type_.name == "bf16")
    if (
        plain
        and isinstance(attribute, ir.DenseElementsAttr)
        and (not isinstance(type_, Int) or type_.bits in (1, 8, 16, 32, 64))
    ):
        return np.array(attribute).reshape(-1).astype(dtype_of(type_))
    text = str(attribute)
    if text.startswith("dense_resource"):
        raise UnsupportedError(f"the simulator reads no resource: {text[:80]}; write it as dense")
    body = text[text.index("<") + 1 : text.rindex(">", 0, text.rindex(" : "))]
    if body.startswith('"0x'):
        raw = np.frombuffer(bytes.fromhex(body[3:-1]), np.uint8)
        size = Layout().size(type_)
        return from_words(raw.view(f"uint{8 * size}"), type_)
    found: list[int | float | str] = []
    for token in _NUMBER.findall(body):
        if token in ("true", "false"):
            found.append(int(token == "true"))
        elif token.startswith("0x"):
            found.append(token if isinstance(type_, Float) else int(token, 16))
        else:
            found.append(float(token) if isinstance(type_, Float) else int(token))
    return _scalars(found, type_)


def constant_bytes(attribute: Any, type_: Type, layout: Layout) -> Array:
    """The bytes of an initialized global, as uint8.

    Raises:
        UnsupportedError: as `constant_value`.
    """
    out = np.zeros(layout.size(type_), np.uint8)
    element = _innermost(type_)
    if isinstance(type_, (Vector, Sequence)) and isinstance(element, (Int, Float)):
        # Tables may be large: one copy instead of a value per element.
        words = to_words(_elements(attribute, element), element, layout)
        whole = np.broadcast_to(words, (out.size // words.itemsize,)) if len(words) == 1 else words
        return np.ascontiguousarray(whole).view(np.uint8)
    value = constant_value(attribute, type_)
    for offset, leaf, part in _leaf_values(value, type_, layout):
        raw = np.ascontiguousarray(to_words(part, leaf, layout)[..., 0]).view(np.uint8).reshape(-1)
        out[offset : offset + raw.size] = raw
    return out


def _leaf_values(value: Value, type_: Type, layout: Layout) -> list[tuple[int, Type, Array]]:
    arrays: list[Array] = []

    def flatten(part: Value) -> None:
        if isinstance(part, tuple):
            for inner in part:
                flatten(inner)
        else:
            arrays.append(part)

    flatten(value)
    pairs = zip(layout.leaves(type_), arrays, strict=True)
    return [(offset, leaf, array) for (offset, leaf), array in pairs]


def undefined(type_: Type) -> Value:
    """The value of ``undef``, ``poison`` and ``zero``: zeros."""
    return zero(type_)
