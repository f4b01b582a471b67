"""permit-atomics: the instructions of the chip for atomic operations on floats may be used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks import mlir
from polyblocks.codegen.gpu.plan import kernels
from polyblocks.codegen.walk import nested

#: LLVM cannot know which memory an atomic touches, and supposes the worst of it.
_MARKS = ("rocdl.no_fine_grained_memory", "rocdl.no_remote_memory")


@dataclass(frozen=True)
class PermitAtomicsPass:
    """Say that atomics touch the device's own memory, in which the chip does all of them.

    Memory that is shared with the host, or of another device, is never handed to kernels. Without
    this an atomic addition becomes a loop of compare and swap.

    Before::

        llvm.atomicrmw fadd %p, %v monotonic : !llvm.ptr<1>, f32

    After::

        llvm.atomicrmw fadd %p, %v monotonic
            {rocdl.no_fine_grained_memory, rocdl.no_remote_memory} : !llvm.ptr<1>, f32
    """

    name: ClassVar[str] = "permit-atomics"

    def run(self, module: Any, context: Any) -> bool:
        """Annotate the kernels in place; returns whether there were atomics."""
        del context
        found = False
        with module.context:
            for kernel in kernels(module):
                for op in nested(kernel):
                    if op.name == "llvm.atomicrmw":
                        found = True
                        for mark in _MARKS:
                            op.attributes[mark] = mlir.ir.UnitAttr.get()
        return found
