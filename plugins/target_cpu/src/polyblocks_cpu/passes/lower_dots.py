"""lower-dots: dot products in the chip's instructions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from polyblocks.affine.vectors.vector_ops import broadcast, extract
from polyblocks.codegen.walk import nested
from polyblocks.mlir import ir
from polyblocks.target import DOT_PREFIX
from polyblocks_cpu.instructions.dots import DOTS, Dot
from polyblocks_cpu.instructions.registers import by_registers, call, in_a_register


@dataclass(frozen=True)
class LowerDotsPass:
    """Let the intrinsics that stand for matrix units be those of LLVM.

    They take whole registers: longer vectors are parts of one each, shorter ones a part of one.

    Before::

        %r = llvm.call_intrinsic "llvm.polyblocks.dot.vpdpbusd"(%c, %a, %b)
            : (vector<16xi32>, vector<16xi32>, vector<16xi32>) -> vector<16xi32>

    After::

        %a8 = vector.bitcast %a : vector<16xi32> to vector<64xi8>
        %b8 = vector.bitcast %b : vector<16xi32> to vector<64xi8>
        %r = llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(%c, %a8, %b8)
            : (vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
    """

    name: ClassVar[str] = "lower-dots"

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite the module in place; returns whether there was anything to do."""
        if not context.target.matrix_units:
            return False
        lanes = context.target.vector_bits // 32
        changed = False
        for op in list(nested(module.operation)):
            if op.name != "llvm.call_intrinsic":
                continue
            name = op.attributes["intrin"].value
            if not name.startswith(DOT_PREFIX):
                continue
            with module.context, op.location, ir.InsertionPoint(op):
                new = _lowered(DOTS[name.removeprefix(DOT_PREFIX)], lanes, list(op.operands))
            op.results[0].replace_all_uses_with(new)
            op.erase()
            changed = True
        return changed


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
