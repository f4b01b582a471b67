"""store-booleans-as-bytes: memrefs of i1 become memrefs of i8."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from polyblocks.codegen.walk import nested

_LOADS = ("affine.load", "memref.load", "vector.load", "vector.maskedload")
#: Position of the value among the operands of a store.
_STORES = {"affine.store": 0, "memref.store": 0, "vector.store": 0, "vector.maskedstore": -1}
#: The body's first arguments are the function's; in a kernel its buffers follow.
_FUNCTIONS = ("func.func", "gpu.func")
_ATOMICS = ("memref.atomic_rmw", "memref.generic_atomic_rmw")


@dataclass(frozen=True)
class StoreBooleansAsBytesPass:
    """A boolean in memory is one byte, 0 or 1; any other byte counts as true when it is read.

    LLVM's loop vectorizer gives up on loads and stores of ``i1``.

    Before::

        %v = affine.load %m[%i] : memref<8xi1>

    After::

        %byte = affine.load %m[%i] : memref<8xi8>
        %v = arith.cmpi ne, %byte, %zero : i8
    """

    name: ClassVar[str] = "store-booleans-as-bytes"

    def run(self, module: Any, context: Any) -> None:
        """Rewrite the module in place.

        Raises:
            ValueError: an op that is not known reads or writes booleans in memory.
        """
        from polyblocks.mlir import ir

        del context
        with module.context, ir.Location.unknown():
            touched = [op for op in nested(module.operation) if _touches_booleans(op)]
            for op in touched:
                if op.name in _LOADS:
                    _rewrite_load(op)
                    continue
                if op.name in _STORES:
                    _rewrite_store(op)
                elif op.name == "memref.global":
                    _rewrite_global(op)
                elif op.name in _FUNCTIONS:
                    _rewrite_function(op)
                elif not op.name.startswith("memref.") or op.name in _ATOMICS:
                    raise ValueError(f"{op.name} on a memref of i1 is not supported")
                for result in op.results:
                    result.set_type(_as_bytes(result.type))


def _touches_booleans(op: Any) -> bool:
    if op.name in _FUNCTIONS:
        return len(op.regions[0].blocks) > 0 and any(
            _is_boolean(a.type) for a in op.regions[0].blocks[0].arguments
        )
    if op.name == "memref.global":
        return _is_boolean(op.attributes["type"].value)
    return any(_is_boolean(v.type) for v in (*op.operands, *op.results))


def _is_boolean(type_: Any) -> bool:
    from polyblocks.mlir import ir

    return isinstance(type_, ir.MemRefType) and str(type_.element_type) == "i1"


def _as_bytes(type_: Any) -> Any:
    from polyblocks.mlir import ir

    if not _is_boolean(type_):
        return type_
    i8 = ir.IntegerType.get_signless(8)
    return ir.MemRefType.get(type_.shape, i8, type_.layout, type_.memory_space)


def _rewrite_load(op: Any) -> None:
    from polyblocks import mlir

    ir = mlir.ir
    arith = mlir.dialect("arith")
    bytes_ = _byte_like(op.results[0].type)
    operands = list(op.operands)
    with op.location, ir.InsertionPoint(op):
        if op.name == "vector.maskedload":
            operands[-1] = arith.ExtUIOp(bytes_, operands[-1]).result
        byte = ir.Operation.create(
            op.name, results=[bytes_], operands=operands, attributes=_attributes(op)
        ).result
        value = arith.CmpIOp(arith.CmpIPredicate.ne, byte, _zero(bytes_)).result
    op.results[0].replace_all_uses_with(value)
    op.erase()


def _rewrite_store(op: Any) -> None:
    from polyblocks import mlir

    ir = mlir.ir
    position = _STORES[op.name] % len(op.operands)
    with op.location, ir.InsertionPoint(op):
        value = op.operands[position]
        byte = mlir.dialect("arith").ExtUIOp(_byte_like(value.type), value).result
    op.operands[position] = byte


def _byte_like(type_: Any) -> Any:
    """i8, or a vector of i8 in the shape of a vector of i1."""
    from polyblocks.mlir import ir

    i8 = ir.IntegerType.get_signless(8)
    return ir.VectorType.get(type_.shape, i8) if isinstance(type_, ir.VectorType) else i8


def _zero(type_: Any) -> Any:
    from polyblocks import mlir

    ir = mlir.ir
    zero = ir.IntegerAttr.get(ir.IntegerType.get_signless(8), 0)
    if isinstance(type_, ir.VectorType):
        zero = ir.DenseElementsAttr.get_splat(type_, zero)
    return mlir.dialect("arith").ConstantOp(type_, zero).result


def _attributes(op: Any) -> dict[str, Any]:
    return {name: op.attributes[name] for name in op.attributes}


def _rewrite_global(op: Any) -> None:
    from polyblocks.mlir import ir

    type_ = _as_bytes(op.attributes["type"].value)
    op.attributes["type"] = ir.TypeAttr.get(type_)
    if "initial_value" not in op.attributes or isinstance(
        op.attributes["initial_value"], ir.UnitAttr
    ):
        return
    values = ir.DenseIntElementsAttr(op.attributes["initial_value"])
    i8 = ir.IntegerType.get_signless(8)
    shaped = ir.RankedTensorType.get(type_.shape, i8)
    if values.is_splat:
        one = ir.IntegerAttr.get(i8, int(bool(values.get_splat_value())))
        op.attributes["initial_value"] = ir.DenseElementsAttr.get_splat(shaped, one)
        return
    data = np.array(values).astype(np.uint8)
    op.attributes["initial_value"] = ir.DenseElementsAttr.get(data, type=shaped)


def _rewrite_function(op: Any) -> None:
    from polyblocks.mlir import ir

    block = op.regions[0].blocks[0]
    for argument in block.arguments:
        argument.set_type(_as_bytes(argument.type))
    old = op.attributes["function_type"].value
    inputs = [a.type for a in block.arguments][: len(old.inputs)]
    op.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, old.results))
