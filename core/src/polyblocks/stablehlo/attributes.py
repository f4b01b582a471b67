"""Reading attributes of StableHLO operations."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyblocks.mlir import ir


def integers(op: Any, name: str, default: list[int] | None = None) -> list[int]:
    """A list of integers: a dense array, or elements of one dimension."""
    if name not in op.attributes:
        assert default is not None, name
        return default
    attribute = op.attributes[name]
    if isinstance(attribute, ir.DenseI64ArrayAttr):
        return [int(v) for v in attribute]
    return [int(v) for v in np.array(ir.DenseIntElementsAttr(attribute)).reshape(-1)]


def booleans(op: Any, name: str, count: int) -> list[bool]:
    """A list of truth values, false unless told otherwise."""
    if name not in op.attributes:
        return [False] * count
    return [bool(v) for v in ir.DenseBoolArrayAttr(op.attributes[name])]


def pairs(op: Any, name: str, count: int) -> list[tuple[int, int]]:
    """Padding of every dimension, (0, 0) unless told otherwise."""
    if name not in op.attributes:
        return [(0, 0)] * count
    attribute = ir.DenseIntElementsAttr(op.attributes[name])
    if not count:
        return []
    flat = [int(attribute[i]) for i in range(2 * count)]
    return list(zip(flat[::2], flat[1::2], strict=True))


def integer(op: Any, name: str, default: int | None = None) -> int:
    """One integer."""
    if name not in op.attributes:
        assert default is not None, name
        return default
    return int(ir.IntegerAttr(op.attributes[name]).value)


def boolean(op: Any, name: str) -> bool:
    """A truth value, false unless told otherwise."""
    return name in op.attributes and bool(ir.BoolAttr(op.attributes[name]).value)


def text(op: Any, name: str) -> str:
    """A string or the name of a symbol."""
    attribute = op.attributes[name]
    if isinstance(attribute, ir.FlatSymbolRefAttr):
        return str(attribute.value)
    return str(ir.StringAttr(attribute).value)


def keyword(op: Any, name: str) -> str:
    """The word of an enumeration: ``#stablehlo<fft_type RFFT>`` -> ``RFFT``."""
    return str(op.attributes[name]).rstrip(">").split()[-1]
