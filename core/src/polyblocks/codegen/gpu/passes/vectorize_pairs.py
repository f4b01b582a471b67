"""vectorize-pairs: a complex number is loaded and stored at once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks import mlir
from polyblocks.affine.element import element_bytes
from polyblocks.codegen.gpu.plan import kernels
from polyblocks.codegen.walk import nested

_PAIR = re.compile(r"!llvm\.struct<\((f32|f64|f16|bf16), \1\)>")
#: Address spaces in which complex numbers are aligned to their size: global and shared memory.
_SPACES = ("!llvm.ptr<1>", "!llvm.ptr<3>")


@dataclass(frozen=True)
class VectorizePairsPass:
    """Loads and stores of pairs of floats become those of vectors of two.

    As structures they would be two accesses, each of half of what neighbouring threads touch.
    Frameworks align complex numbers to their size.

    Before::

        %c = llvm.load %p : !llvm.ptr<1> -> !llvm.struct<(f32, f32)>

    After::

        %v = llvm.load %p {alignment = 8 : i64} : !llvm.ptr<1> -> vector<2xf32>
        %c = ... // the structure of both elements
    """

    name: ClassVar[str] = "vectorize-pairs"

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite the kernels in place; returns whether there were pairs."""
        del context
        count = 0
        with module.context:
            for kernel in kernels(module):
                for op in list(nested(kernel)):
                    if op.name == "llvm.load" and str(op.operands[0].type) in _SPACES:
                        count += _load(op)
                    elif op.name == "llvm.store" and str(op.operands[1].type) in _SPACES:
                        count += _store(op)
        return count > 0


def _load(op: Any) -> bool:
    ir = mlir.ir
    match = _PAIR.fullmatch(str(op.results[0].type))
    if match is None:
        return False
    with op.location, ir.InsertionPoint(op):
        vector = _vector(match[1])
        loaded = ir.Operation.create(
            "llvm.load",
            results=[vector],
            operands=[op.operands[0]],
            attributes=_attributes(op, match[1]),
        ).result
        pair = ir.Operation.create("llvm.mlir.undef", results=[op.results[0].type]).result
        for i in range(2):
            part = _op("llvm.extractelement", vector.element_type, loaded, _index(i))
            pair = ir.Operation.create(
                "llvm.insertvalue",
                results=[pair.type],
                operands=[pair, part],
                attributes={"position": ir.DenseI64ArrayAttr.get([i])},
            ).result
    op.results[0].replace_all_uses_with(pair)
    op.erase()
    return True


def _store(op: Any) -> bool:
    ir = mlir.ir
    pair, pointer = op.operands
    match = _PAIR.fullmatch(str(pair.type))
    if match is None:
        return False
    with op.location, ir.InsertionPoint(op):
        vector = _vector(match[1])
        value = ir.Operation.create("llvm.mlir.undef", results=[vector]).result
        for i in range(2):
            part = ir.Operation.create(
                "llvm.extractvalue",
                results=[vector.element_type],
                operands=[pair],
                attributes={"position": ir.DenseI64ArrayAttr.get([i])},
            ).result
            value = _op("llvm.insertelement", vector, value, part, _index(i))
        ir.Operation.create(
            "llvm.store", operands=[value, pointer], attributes=_attributes(op, match[1])
        )
    op.erase()
    return True


def _vector(element: str) -> Any:
    return mlir.ir.VectorType.get([2], mlir.ir.Type.parse(element))


def _attributes(op: Any, element: str) -> dict[str, Any]:
    ir = mlir.ir
    alignment = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 2 * element_bytes(element))
    return {**{name: op.attributes[name] for name in op.attributes}, "alignment": alignment}


def _index(value: int) -> Any:
    ir = mlir.ir
    i32 = ir.IntegerType.get_signless(32)
    attributes = {"value": ir.IntegerAttr.get(i32, value)}
    return ir.Operation.create("llvm.mlir.constant", results=[i32], attributes=attributes).result


def _op(name: str, type_: Any, *operands: Any) -> Any:
    return mlir.ir.Operation.create(name, results=[type_], operands=list(operands)).result
