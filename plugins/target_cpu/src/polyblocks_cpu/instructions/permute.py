"""AVX-512's permutations as tables of 16 numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyblocks.codegen.builder import Builder, Val
from polyblocks.mlir import ir
from polyblocks_cpu.instructions.avx512 import intrinsic
from polyblocks_cpu.instructions.registers import by_registers

#: Lanes of a register of 512 bits: all numbers are in one.
_FULL = 16


def pick_from(b: Builder, numbers: Sequence[float]) -> Callable[[Val], Val] | None:
    """A function that picks one of 16 float32 ``numbers`` by the lowest four bits of an i32.

    Returns:
        None but for vectors that fill one register of 256 or 512 bits, or some of 512.

    Raises:
        ValueError: there are more or less than 16 numbers.
    """
    if len(numbers) != _FULL:
        raise ValueError(f"a table has 16 numbers, not {len(numbers)}")
    if b.shape is None or len(b.shape) != 1 or b.scalable:
        return None
    (lanes,) = b.shape
    if lanes == _FULL // 2:
        return lambda index: Val(b, _from_two(numbers, index.value), "f32")
    if lanes % _FULL or lanes & (lanes - 1):
        return None
    return lambda index: Val(b, _from_one(numbers, index.value), "f32")


def _from_one(numbers: Sequence[float], index: Any) -> Any:
    table = _vector(numbers)
    return by_registers(_FULL, lambda part: intrinsic("permvar.sf.512", table, part), (index,))


def _from_two(numbers: Sequence[float], index: Any) -> Any:
    half = _FULL // 2
    return intrinsic("vpermi2var.ps.256", _vector(numbers[:half]), index, _vector(numbers[half:]))


def _vector(numbers: Sequence[float]) -> Any:
    f32 = ir.F32Type.get()
    type_ = ir.VectorType.get([len(numbers)], f32)
    values = [ir.FloatAttr.get(f32, number) for number in numbers]
    attribute = ir.DenseElementsAttr.get(values, type_)
    return ir.Operation.create(
        "arith.constant", results=[type_], attributes={"value": attribute}
    ).result
