"""assign-memory-spaces: every memref of a kernel says in which memory it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.codegen.gpu.plan import kernel_module, kernels
from polyblocks.codegen.memory import VIEWS
from polyblocks.codegen.walk import nested

GLOBAL = "#gpu.address_space<global>"
PRIVATE = "#gpu.address_space<private>"
WORKGROUP = "#gpu.address_space<workgroup>"
#: Operations whose first result is in the memory of their operand.
_ALIASES = {*VIEWS, "memref.extract_strided_metadata"} - {"memref.memory_space_cast"}


@dataclass(frozen=True)
class AssignMemorySpacesPass:
    """Arguments and constants of a kernel are in global memory; its allocations are private.

    A memref of no space would become a generic pointer, and some chips have no stack there.

    Before::

        gpu.func @k(%x: memref<8xf32>) kernel {
          %t = memref.alloca() : memref<4xf32>

    After::

        gpu.func @k(%x: memref<8xf32, #gpu.address_space<global>>) kernel {
          %t = memref.alloca() : memref<4xf32, #gpu.address_space<private>>
    """

    name: ClassVar[str] = "assign-memory-spaces"

    def run(self, module: Any, context: Any) -> None:
        """Rewrite the kernels in place."""
        from polyblocks.mlir import ir

        del context
        holder = kernel_module(module)
        if holder is None:
            return
        with module.context, ir.Location.unknown():
            for op in holder.regions[0].blocks[0].operations:
                if op.operation.name == "memref.global":
                    type_ = _placed(op.operation.attributes["type"].value, GLOBAL)
                    op.operation.attributes["type"] = ir.TypeAttr.get(type_)
            for kernel in kernels(module):
                _place(kernel)


def _place(kernel: Any) -> None:
    from polyblocks.mlir import ir

    old = kernel.attributes["function_type"].value
    block = kernel.regions[0].blocks[0]
    for argument in list(block.arguments)[: len(old.inputs)]:
        _retype(argument, GLOBAL)
    inputs = [a.type for a in block.arguments][: len(old.inputs)]
    kernel.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, old.results))
    for op in list(nested(kernel)):
        if op.name == "memref.alloca":
            _retype(op.results[0], PRIVATE)
        elif op.name == "memref.get_global":
            _retype(op.results[0], GLOBAL)


def _retype(value: Any, space: str) -> None:
    """Change a memref's type, and the types of the views of it."""
    from polyblocks.mlir import ir

    if not isinstance(value.type, ir.MemRefType) or value.type.memory_space is not None:
        return
    plain = value.type
    value.set_type(_placed(plain, space))
    foreign = []
    for use in list(value.uses):
        owner = use.owner.operation
        if owner.name in _ALIASES:
            _retype(owner.results[0], space)
        elif owner.name.startswith(("scf.", "cf.", "arith.select")):
            foreign.append((owner, use.operand_number))
    if not foreign:
        return
    # Memrefs that loops and choices hand on keep their type.
    owner = value.owner
    at = (
        ir.InsertionPoint.at_block_begin(owner)
        if isinstance(owner, ir.Block)
        else ir.InsertionPoint.after(owner.operation)
    )
    with at:
        cast = ir.Operation.create("memref.memory_space_cast", results=[plain], operands=[value])
    for user, position in foreign:
        user.operands[position] = cast.result


def _placed(type_: Any, space: str) -> Any:
    from polyblocks.mlir import ir

    if type_.memory_space is not None:
        return type_
    return ir.MemRefType.get(
        type_.shape, type_.element_type, type_.layout, ir.Attribute.parse(space)
    )
