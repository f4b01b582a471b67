"""bind-arguments: ``@main`` takes buffers instead of tensors, results become output buffers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks import signature
from polyblocks.passes import facts


@dataclass(frozen=True)
class BindArgumentsPass:
    """Turn the value-semantic ``@main`` into destination-passing style on strided memrefs.

    Before::

        func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { ... return %r : tensor<4xf32> }

    After::

        func.func @main(%a: memref<4xf32>, %out: memref<4xf32>) {
          %t = bufferization.to_tensor %a : memref<4xf32> to tensor<4xf32>
          ...
          bufferization.materialize_in_destination %r in restrict writable %out
          return
        }

    A result that updates an argument in place goes to the argument's buffer: it is computed into
    a buffer of its own first and copied at the end, since the argument may be read until then.
    """

    name: ClassVar[str] = "bind-arguments"
    needs: ClassVar[frozenset[str]] = frozenset({facts.TENSORS})
    establishes: ClassVar[frozenset[str]] = frozenset({facts.BOUND_ARGUMENTS})

    def run(self, module: Any, context: Any) -> None:
        """Rewrite ``@main`` in place."""
        from polyblocks import mlir

        del context
        ir = mlir.ir
        bufferization = mlir.dialect("bufferization")
        memref = mlir.dialect("memref")
        arguments = signature.rows(module)
        results = signature.rows(module, results=True)
        with module.context, ir.Location.unknown():
            function = signature.main_of(module)
            block = function.body.blocks[0]
            terminator = block.operations[len(block.operations) - 1]
            for index, row in enumerate(arguments):
                old = block.arguments[index]
                tensor_type = ir.RankedTensorType(old.type)
                with ir.InsertionPoint.at_block_begin(block):
                    if 0 in tensor_type.shape:
                        # Nothing is read through it, and the conversion to LLVM passes a memref
                        # without elements as a descriptor, not as a pointer.
                        empty = mlir.dialect("tensor").EmptyOp(
                            list(tensor_type.shape), tensor_type.element_type
                        )
                        old.replace_all_uses_with(empty.result)
                        old.set_type(ir.MemRefType.get([1], tensor_type.element_type))
                        continue
                    old.set_type(memref_type(row, tensor_type))
                    tensor = bufferization.ToTensorOp(tensor_type, old, restrict=True)
                old.replace_all_uses_except(tensor.result, tensor.operation)

            # Taken only now: an argument may be returned as it is, and it was a tensor before.
            returned = list(terminator.operands)
            new_rows = list(arguments)
            with ir.InsertionPoint(terminator):
                updates = []
                for row, value in zip(results, returned, strict=True):
                    if row["updates"] is not None:
                        updates.append((row["updates"], value))
                        continue
                    out = block.add_argument(memref_type(row, value.type), ir.Location.unknown())
                    _materialize(bufferization, value, out)
                    new_rows.append(row)
                copies = []
                for index, value in updates:
                    # Not straight into the argument: bufferization believes `restrict`, and would
                    # let a producer overwrite the argument while others still read it.
                    shaped = ir.RankedTensorType(value.type)
                    dense = ir.MemRefType.get(shaped.shape, shaped.element_type)
                    own = memref.AllocOp(dense, [], [])
                    _materialize(bufferization, value, own)
                    copies.append((own, block.arguments[index]))
                    new_rows[index] = {**new_rows[index], "updates": index}
                for own, argument in copies:
                    memref.CopyOp(own, argument)
                func = mlir.dialect("func")
                func.ReturnOp([])
            terminator.erase()
            function.attributes["function_type"] = ir.TypeAttr.get(
                ir.FunctionType.get([a.type for a in block.arguments], [])
            )
            if "res_attrs" in function.attributes:
                del function.attributes["res_attrs"]
        signature.set_rows(module, new_rows)


def memref_type(row: dict[str, Any], tensor_type: Any) -> Any:
    """The memref type of one argument; plain when it is dense and row-major."""
    from polyblocks.mlir import ir

    spec = signature.spec_of(row)
    element = ir.RankedTensorType(tensor_type).element_type
    # Steps of zero elements between rows without any: the bare-pointer convention refuses them.
    if spec.is_contiguous and 0 not in spec.shape[1:]:
        return ir.MemRefType.get(list(spec.shape), element)
    layout = ir.StridedLayoutAttr.get(0, list(spec.strides))
    return ir.MemRefType.get(list(spec.shape), element, layout)


def _materialize(bufferization: Any, value: Any, destination: Any) -> None:
    bufferization.MaterializeInDestinationOp(None, value, destination, restrict=True, writable=True)
