"""Element types of StableHLO, with the signedness that linalg's types no longer have."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from polyblocks.errors import UnsupportedError
from polyblocks.mlir import ir

_INTEGER = re.compile(r"(u?)i(\d+)")
_FLOATS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
_WIDTHS = (8, 16, 32, 64)


@dataclass(frozen=True)
class Element:
    """One element type.

    Attributes:
        name: as StableHLO writes it: ``f32``, ``ui8``, ``i1``, ``complex<f64>``.
    """

    name: str

    @classmethod
    def of(cls, kind: Any) -> Element:
        """The element type of a tensor type, or of an element type itself.

        Raises:
            UnsupportedError: no array of it can be computed with.
        """
        if isinstance(kind, ir.ShapedType):
            kind = kind.element_type
        return cls.named(str(kind))

    @classmethod
    def named(cls, name: str) -> Element:
        """The element type of this name.

        Raises:
            UnsupportedError: no array of it can be computed with.
        """
        integer = _INTEGER.fullmatch(name)
        known = (
            name in (*_FLOATS, "i1", "complex<f32>", "complex<f64>")
            or integer is not None
            and int(integer[2]) in _WIDTHS
        )
        if not known:
            raise UnsupportedError(f"elements of type {name}")
        return cls(name)

    @property
    def is_float(self) -> bool:
        """A real floating-point type."""
        return self.name in _FLOATS

    @property
    def is_complex(self) -> bool:
        """A complex type."""
        return self.name.startswith("complex")

    @property
    def is_bool(self) -> bool:
        """The type of truth values."""
        return self.name == "i1"

    @property
    def is_unsigned(self) -> bool:
        """Values are never negative: an unsigned integer or a truth value."""
        return self.is_bool or self.name.startswith("ui")

    @property
    def is_integer(self) -> bool:
        """An integer type; truth values are none."""
        return not (self.is_float or self.is_complex or self.is_bool)

    @cached_property
    def width(self) -> int:
        """Bits of a value; of one part of a complex value."""
        if self.is_complex:
            return self.part.width
        return _FLOATS.get(self.name) or int(self.name.removeprefix("ui").removeprefix("i"))

    @property
    def part(self) -> Element:
        """The type of real and imaginary part."""
        return Element(self.name.removeprefix("complex<").removesuffix(">"))

    @property
    def type(self) -> Any:
        """The type without signedness, in the current context."""
        return ir.Type.parse(self.name.removeprefix("u"))

    def tensor(self, shape: Any) -> Any:
        """The tensor type of this shape, without signedness."""
        return ir.RankedTensorType.get(list(shape), self.type)

    @property
    def lowest(self) -> int:
        """The least integer."""
        return 0 if self.is_unsigned else -(1 << (self.width - 1))

    @property
    def highest(self) -> int:
        """The greatest integer."""
        return (1 << (self.width - (not self.is_unsigned))) - 1

    def attribute(self, value: Any) -> Any:
        """A number of this (not complex) type as an attribute."""
        kind = self.type
        if self.is_float:
            return ir.FloatAttr.get(kind, float(value))
        if self.is_bool:
            return ir.IntegerAttr.get(kind, int(bool(value)))
        return ir.IntegerAttr.get(kind, self.wrapped(int(value)))

    def wrapped(self, value: int) -> int:
        """An integer modulo the width, as the signed number of the same bits."""
        value &= (1 << self.width) - 1
        return value - (1 << self.width) if value >> (self.width - 1) else value


BOOL = Element("i1")
I32 = Element("i32")
I64 = Element("i64")
F32 = Element("f32")
F64 = Element("f64")
