"""Dot products in the chip's instructions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from polyblocks.affine.vectors.vector_ops import broadcast, extract
from polyblocks.mlir import ir
from polyblocks.target import TargetDescription
from polyblocks_cpu.instructions.dots import Dot
from polyblocks_cpu.instructions.registers import by_registers, call, in_a_register


@dataclass(frozen=True)
class DotInstructions:
    """Emits a dot product; see :class:`polyblocks.codegen.units.lower_units.DotEmitter`.

    Instructions take whole registers: longer vectors are parts of one each, shorter ones a part of
    one.

    Before::

        %r = llvm.call_intrinsic "llvm.polyblocks.dot.vpdpbusd"(%c, %a, %b)
            : (vector<16xi32>, vector<16xi32>, vector<16xi32>) -> vector<16xi32>

    After::

        %a8 = vector.bitcast %a : vector<16xi32> to vector<64xi8>
        %b8 = vector.bitcast %b : vector<16xi32> to vector<64xi8>
        %r = llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(%c, %a8, %b8)
            : (vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>

    Attributes:
        dot: the instruction.
    """

    dot: Dot

    def emit(self, target: TargetDescription, operands: Sequence[Any]) -> Any:
        """Write one dot product of scalars or vectors."""
        return _lowered(self.dot, target.vector_bits // 32, list(operands))


def _lowered(dot: Dot, most: int, values: list[Any]) -> Any:
    """The result of one dot product, on vectors or scalars.

    Args:
        dot: the instruction.
        most: lanes of the vectors that code is generated with.
        values: accumulator, first and second operand.
    """
    if not isinstance(values[0].type, ir.VectorType):
        width = min(dot.intrinsics)
        wide = [broadcast(v, ir.VectorType.get([width], v.type)) for v in values]
        return extract(_register(dot, *wide), 0)
    (lanes,) = values[0].type.shape
    width = max(n for n in dot.intrinsics if n <= max(most, min(dot.intrinsics)))
    if lanes <= width and lanes in dot.intrinsics:
        return _register(dot, *values)
    if lanes > width:
        return by_registers(width, partial(_register, dot), values)
    width = min(n for n in dot.intrinsics if n >= lanes)
    return in_a_register(width, partial(_register, dot), values)


def _register(dot: Dot, accumulator: Any, first: Any, second: Any) -> Any:
    """One instruction."""
    (lanes,) = accumulator.type.shape
    element = ir.Type.parse(dot.element)
    type_ = ir.VectorType.get([lanes * dot.steps], element)
    operands = [
        ir.Operation.create("vector.bitcast", results=[type_], operands=[v]).results[0]
        for v in (first, second)
    ]
    return call(dot.intrinsics[lanes], accumulator, *operands)
