"""Integer ops of the llvm dialect on lanes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from polyblocks.simt.semantics import Instruction, Operation, Run
from polyblocks.simt.types import (
    Array,
    Int,
    container_bits,
    dtype_of,
    scalar_of,
    signed,
    unsigned,
)

Binary = Callable[[Array, Array], Array]


def bits_of(instruction: Instruction, index: int = 0) -> int:
    """Width of an integer operand."""
    scalar = scalar_of(instruction.operands[index])
    assert isinstance(scalar, Int), instruction.name
    return scalar.bits


def as_number(value: Array, bits: int) -> Array:
    """Signed numbers; i1 true is -1."""
    return -value.astype(np.int8) if bits == 1 else value


def _by_sign(function: Binary) -> Operation:
    def decode(instruction: Instruction) -> Run:
        bits = bits_of(instruction)
        if bits == container_bits(bits):
            return lambda m, a, b: function(a, b)
        return lambda m, a, b: signed(function(as_number(a, bits), as_number(b, bits)), bits)

    return Operation(decode, "integer")


def _by_magnitude(function: Binary) -> Operation:
    def decode(instruction: Instruction) -> Run:
        bits = bits_of(instruction)
        return lambda m, a, b: signed(function(unsigned(a, bits), unsigned(b, bits)), bits)

    return Operation(decode, "integer")


def divide(a: Array, b: Array) -> Array:
    """Quotient truncated toward zero; x / 0 is x, which no correct program looks at."""
    divisor = np.where(b == 0, np.ones_like(b), b)
    quotient = a // divisor
    rest = a - quotient * divisor
    return quotient + ((rest != 0) & ((a < 0) != (divisor < 0))).astype(quotient.dtype)


def remainder(a: Array, b: Array) -> Array:
    """Remainder with the sign of the dividend."""
    divisor = np.where(b == 0, np.ones_like(b), b)
    return a - divide(a, divisor) * divisor


def _udiv(a: Array, b: Array) -> Array:
    return a // np.where(b == 0, np.ones_like(b), b)


def _urem(a: Array, b: Array) -> Array:
    return a % np.where(b == 0, np.ones_like(b), b)


def _checked_division(operation: Operation) -> Operation:
    def decode(instruction: Instruction) -> Run:
        run = operation.decode(instruction)

        def checked(m: object, a: Array, b: Array) -> Array:
            if not b.all():
                m.report("division by zero", "divides by zero", b == 0)  # type: ignore[attr-defined]
            return run(m, a, b)

        return checked

    return Operation(decode, operation.kind)


def _compare(instruction: Instruction) -> Run:
    predicate = instruction.integer("predicate")
    function: Binary = [
        np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal,
        np.less, np.less_equal, np.greater, np.greater_equal,
    ][predicate]  # fmt: skip
    if not isinstance(scalar_of(instruction.operands[0]), Int):
        return lambda m, a, b: function(a, b)
    bits = bits_of(instruction)
    if predicate >= 6:
        return lambda m, a, b: function(unsigned(a, bits), unsigned(b, bits))
    if bits == 1:
        return lambda m, a, b: function(as_number(a, 1), as_number(b, 1))
    return lambda m, a, b: function(a, b)


def _sext(instruction: Instruction) -> Run:
    bits, dtype = bits_of(instruction), dtype_of(scalar_of(instruction.result))
    return lambda m, a: as_number(a, bits).astype(dtype)


def _zext(instruction: Instruction) -> Run:
    bits, dtype = bits_of(instruction), dtype_of(scalar_of(instruction.result))
    return lambda m, a: unsigned(a, bits).astype(dtype)


def _trunc(instruction: Instruction) -> Run:
    to = scalar_of(instruction.result)
    assert isinstance(to, Int)
    bits = to.bits
    return lambda m, a: signed(a, bits)


def _shift_left(a: Array, b: Array) -> Array:
    return a << b


def _shift_right(a: Array, b: Array) -> Array:
    return a >> b


OPERATIONS: dict[str, Operation] = {
    "llvm.add": _by_sign(np.add),
    "llvm.sub": _by_sign(np.subtract),
    "llvm.mul": _by_sign(np.multiply),
    "llvm.sdiv": _checked_division(_by_sign(divide)),
    "llvm.srem": _checked_division(_by_sign(remainder)),
    "llvm.udiv": _checked_division(_by_magnitude(_udiv)),
    "llvm.urem": _checked_division(_by_magnitude(_urem)),
    "llvm.and": _by_sign(np.bitwise_and),
    "llvm.or": _by_sign(np.bitwise_or),
    "llvm.xor": _by_sign(np.bitwise_xor),
    "llvm.shl": _by_magnitude(_shift_left),
    "llvm.lshr": _by_magnitude(_shift_right),
    "llvm.ashr": _by_sign(_shift_right),
    "llvm.intr.smax": _by_sign(np.maximum),
    "llvm.intr.smin": _by_sign(np.minimum),
    "llvm.intr.umax": _by_magnitude(np.maximum),
    "llvm.intr.umin": _by_magnitude(np.minimum),
    "llvm.icmp": Operation(_compare, "integer"),
    "llvm.sext": Operation(_sext, "conversion"),
    "llvm.zext": Operation(_zext, "conversion"),
    "llvm.trunc": Operation(_trunc, "conversion"),
}
