"""Intrinsics of the llvm dialect on integers: bits, saturation, overflow."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from polyblocks.simt.integers import as_number, bits_of
from polyblocks.simt.semantics import Instruction, Operation, Run
from polyblocks.simt.types import Array, signed, unsigned

_BITS8 = np.array([bin(i).count("1") for i in range(256)], np.uint8)
_REVERSED8 = np.array([int(f"{i:08b}"[::-1], 2) for i in range(256)], np.uint8)


def bytes_of(value: Array) -> Array:
    """The bytes of each element along a new last axis."""
    whole = np.ascontiguousarray(value)
    return whole.view(np.uint8).reshape(*whole.shape, whole.dtype.itemsize)


def count_ones(value: Array) -> Array:
    """Number of set bits of each unsigned element, as int64."""
    return _BITS8[bytes_of(value)].sum(axis=-1, dtype=np.int64)


def _smear(value: Array) -> Array:
    """Set all bits below the highest one."""
    for step in (1, 2, 4, 8, 16, 32):
        if step < value.dtype.itemsize * 8:
            value = value | (value >> value.dtype.type(step))
    return value


def _leading(value: Array, bits: int) -> Array:
    return bits - count_ones(_smear(value))


def _trailing(value: Array, bits: int) -> Array:
    one = value.dtype.type(1)
    return np.minimum(count_ones(~value & (value - one)), bits)


def _reverse(value: Array, bits: int) -> Array:
    turned = _REVERSED8[bytes_of(value)[..., ::-1]]
    words = np.ascontiguousarray(turned).view(value.dtype)[..., 0]
    return words >> value.dtype.type(value.dtype.itemsize * 8 - bits)


def _swap(value: Array, bits: int) -> Array:
    return value.byteswap() >> value.dtype.type(value.dtype.itemsize * 8 - bits)


def _unary(function: Callable[[Array, int], Array]) -> Operation:
    def decode(instruction: Instruction) -> Run:
        bits = bits_of(instruction)
        return lambda m, a, *flags: signed(function(unsigned(a, bits), bits), bits)

    return Operation(decode, "integer")


def _abs(instruction: Instruction) -> Run:
    bits = bits_of(instruction)
    return lambda m, a, *flags: signed(np.abs(as_number(a, bits)), bits)


def _funnel(left: bool) -> Operation:
    def decode(instruction: Instruction) -> Run:
        bits = bits_of(instruction)

        def run(m: object, a: Array, b: Array, amount: Array) -> Array:
            high, low = unsigned(a, bits), unsigned(b, bits)
            step = unsigned(amount, bits) % high.dtype.type(bits)
            back = high.dtype.type(bits) - step
            if left:
                mixed = (high << step) | np.where(step == 0, low.dtype.type(0), low >> back)
            else:
                mixed = (low >> step) | np.where(step == 0, low.dtype.type(0), high << back)
            return signed(mixed, bits)

        return run

    return Operation(decode, "integer")


def _bounds(bits: int, with_sign: bool) -> tuple[int, int]:
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if with_sign else (0, (1 << bits) - 1)


def _exact(a: Array, b: Array, name: str, bits: int, with_sign: bool) -> tuple[Array, Array, Array]:
    """(wrapped result, whether it is above the range, whether below) of add, sub or mul."""
    read = as_number if with_sign else unsigned
    low, high = _bounds(bits, with_sign)
    function = {"add": np.add, "sub": np.subtract, "mul": np.multiply}[name]
    wide = np.int64 if bits <= 31 else object
    x, y = np.broadcast_arrays(read(a, bits), read(b, bits))
    exact = function(x.astype(wide), y.astype(wide))
    wrapped = function(x, y)
    return wrapped, (exact > high).astype(bool), (exact < low).astype(bool)


def _saturating(name: str, with_sign: bool) -> Operation:
    def decode(instruction: Instruction) -> Run:
        bits = bits_of(instruction)
        low, high = _bounds(bits, with_sign)

        def run(m: object, a: Array, b: Array) -> Array:
            wrapped, above, below = _exact(a, b, name, bits, with_sign)
            kind = wrapped.dtype.type
            return signed(np.where(above, kind(high), np.where(below, kind(low), wrapped)), bits)

        return run

    return Operation(decode, "integer")


def _overflowing(name: str, with_sign: bool) -> Operation:
    def decode(instruction: Instruction) -> Run:
        bits = bits_of(instruction)

        def run(m: object, a: Array, b: Array) -> tuple[Array, Array]:
            wrapped, above, below = _exact(a, b, name, bits, with_sign)
            return signed(wrapped, bits), above | below

        return run

    return Operation(decode, "integer")


OPERATIONS: dict[str, Operation] = {
    "llvm.intr.ctlz": _unary(_leading),
    "llvm.intr.cttz": _unary(_trailing),
    "llvm.intr.ctpop": _unary(lambda value, bits: count_ones(value)),
    "llvm.intr.bitreverse": _unary(_reverse),
    "llvm.intr.bswap": _unary(_swap),
    "llvm.intr.abs": Operation(_abs, "integer"),
    "llvm.intr.fshl": _funnel(left=True),
    "llvm.intr.fshr": _funnel(left=False),
    **{
        f"llvm.intr.{sign}{name}.sat": _saturating(name, sign == "s")
        for sign in "su"
        for name in ("add", "sub")
    },
    **{
        f"llvm.intr.{sign}{name}.with.overflow": _overflowing(name, sign == "s")
        for sign in "su"
        for name in ("add", "sub", "mul")
    },
}
