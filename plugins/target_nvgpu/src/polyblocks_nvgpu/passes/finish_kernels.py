"""finish-kernels: the attributes that the assembler needs on kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks import mlir
from polyblocks.attributes import RESIDENT_ATTRIBUTE
from polyblocks.codegen.gpu.passes.place_shared_memory import ALIGNMENT, shared_alignment
from polyblocks.codegen.gpu.plan import kernel_module, kernels

_KNOWN, _AT_MOST, _EXACTLY = "gpu.known_block_size", "nvvm.maxntid", "nvvm.reqntid"
_AT_ONCE = "nvvm.minctasm"


@dataclass(frozen=True)
class FinishKernelsPass:
    """Blocks have exactly the size that is known, and dynamic shared memory comes from outside.

    It is aligned as the kernels ask. Registers are limited for the resident blocks that the mapping
    assumes.

    Before::

        llvm.mlir.global internal @__dynamic_shmem__0() {addr_space = 3 : i32} : !llvm.array<0 x i8>
        llvm.func @k() attributes {nvvm.kernel, nvvm.maxntid = array<i32: 256, 1, 1>,
                                   polyblocks.resident = 4 : i32}

    After::

        llvm.mlir.global external @__dynamic_shmem__0() {addr_space = 3 : i32} : !llvm.array<0 x i8>
        llvm.func @k() attributes {nvvm.kernel, nvvm.reqntid = array<i32: 256, 1, 1>,
                                   nvvm.minctasm = 4 : i32, polyblocks.resident = 4 : i32}
    """

    name: ClassVar[str] = "finish-kernels"

    def run(self, module: Any, context: Any) -> None:
        """Rewrite the kernels in place."""
        del context
        ir = mlir.ir
        with module.context:
            for kernel in kernels(module):
                attributes = kernel.attributes
                if _KNOWN in attributes:
                    attributes[_EXACTLY] = attributes[_KNOWN]
                    if _AT_MOST in attributes:
                        del attributes[_AT_MOST]
                if RESIDENT_ATTRIBUTE in attributes and attributes[RESIDENT_ATTRIBUTE].value > 1:
                    attributes[_AT_ONCE] = attributes[RESIDENT_ATTRIBUTE]
            alignment = max(map(shared_alignment, kernels(module)), default=ALIGNMENT)
            holder = kernel_module(module)
            for op in holder.regions[0].blocks[0].operations if holder is not None else ():
                attributes = op.operation.attributes
                if op.operation.name == "llvm.mlir.global" and (
                    str(attributes["global_type"]).startswith("!llvm.array<0 x")
                ):
                    attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<external>")
                    i64 = ir.IntegerType.get_signless(64)
                    attributes["alignment"] = ir.IntegerAttr.get(i64, alignment)
