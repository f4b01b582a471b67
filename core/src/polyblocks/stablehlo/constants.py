"""Constants: from StableHLO's attributes to arrays, and to constant tensors."""

from __future__ import annotations

import re
from math import prod
from typing import Any

import numpy as np

from polyblocks.errors import UnsupportedError
from polyblocks.mlir import ir
from polyblocks.stablehlo.array import MOST_NUMBERS, Array, known_array
from polyblocks.stablehlo.code import emit
from polyblocks.stablehlo.element import F32, Element


def from_attribute(op: Any, shape: tuple[int, ...], element: Element) -> Array:
    """The array of a ``stablehlo.constant`` of real numbers."""
    if not prod(shape):
        return Array(shape, element, splat=0)
    attribute = op.attributes["value"]
    if isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat:
        return Array(shape, element, splat=_number(attribute, element))
    if isinstance(attribute, ir.DenseElementsAttr) and (element.is_integer or element.is_bool):
        count = prod(shape)
        if count <= MOST_NUMBERS:
            numbers = [attribute[i] for i in range(count)]
            return known_array(element, np.array(numbers, dtype=object).reshape(shape))
    # The bindings do not read every kind of attribute; its text has the type at its end, and
    # everything before it is the same without signedness.
    kind = element.tensor(shape)
    if element.is_unsigned and not element.is_bool:
        text = str(attribute)
        at = text.rindex(" : ")
        attribute = ir.Attribute.parse(f"{_signless(text[:at])} : {kind}")
    return Array(shape, element, emit("arith.constant", [], kind, value=attribute))


def _signless(text: str) -> str:
    if "dense_resource" in text:
        raise UnsupportedError("a constant of unsigned integers in a resource")
    return text


def _number(attribute: Any, element: Element) -> Any:
    """The number of a splat."""
    value = attribute.get_splat_value()
    if element.is_float:
        return float(ir.FloatAttr(value).value)
    if element.is_bool:
        return bool(ir.BoolAttr(value).value)
    return int(ir.IntegerAttr(value).value)


def from_complex(op: Any, shape: tuple[int, ...], element: Element) -> tuple[Any, Any]:
    """Real and imaginary parts of a constant, NumPy arrays of its shape.

    The bindings cannot look into attributes of complex numbers, so their text is read.
    """
    dtype: Any = np.dtype("<f4" if element.width == F32.width else "<f8")
    text = _COMPLEX.search(op.get_asm(large_elements_limit=None, skip_regions=True))
    if text is None:
        raise UnsupportedError("a constant of complex numbers that is no list of them")
    if text[1].startswith('"0x'):
        flat = np.frombuffer(bytes.fromhex(text[1].strip('"')[2:]), dtype).reshape(-1, 2)
    else:
        numbers = [_float(word, dtype) for word in re.findall(r"[^\s\[\](),]+", text[1])]
        flat = np.array(numbers, dtype).reshape(-1, 2)
    if len(flat) == 1:
        flat = np.broadcast_to(flat, (prod(shape), 2))
    return flat[:, 0].reshape(shape), flat[:, 1].reshape(shape)


_COMPLEX = re.compile(r'dense<((?:"0x[0-9A-Fa-f]+")|[^"<>]*)>')


def _float(text: str, dtype: Any) -> float:
    """A float as MLIR prints it: decimal, or the bits in hexadecimal."""
    if text.startswith("0x"):
        return float(np.frombuffer(int(text, 16).to_bytes(dtype.itemsize, "little"), dtype)[0])
    return float(text)


def dense(element: Element, shape: tuple[int, ...], numbers: Any) -> Any:
    """A constant tensor; ``numbers`` is an array of integers, or one number for all elements."""
    kind = element.tensor(shape)
    if isinstance(numbers, np.ndarray):
        attributes = [element.attribute(v) for v in numbers.reshape(-1)]
        attribute = ir.DenseElementsAttr.get(attributes, kind)
    else:
        attribute = ir.DenseElementsAttr.get_splat(kind, element.attribute(numbers))
    return emit("arith.constant", [], kind, value=attribute)
