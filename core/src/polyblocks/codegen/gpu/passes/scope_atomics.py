"""scope-atomics: atomic operations order no more than they have to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks import mlir
from polyblocks.codegen.gpu.plan import kernels
from polyblocks.codegen.walk import nested

#: LLVM's AtomicOrdering.
_MONOTONIC = 2


@dataclass(frozen=True)
class ScopeAtomicsPass:
    """Atomics are seen by the device, those on shared memory by the block.

    MLIR's atomics order all of memory for the whole system, which costs many times the
    operation. One on global memory, and one with an unused result or in a retry loop, needs to
    order nothing but itself: blocks that wait for others say so by fences, which are the device's.
    The value that a retry loop starts with is loaded atomically too.

    Before::

        %r = llvm.atomicrmw fadd %p, %v acq_rel : !llvm.ptr<1>, f32

    After::

        %r = llvm.atomicrmw fadd %p, %v syncscope("device") monotonic : !llvm.ptr<1>, f32

    Attributes:
        device: LLVM's name for the scope of all threads of the device.
        block: LLVM's name for the scope of a block.
    """

    name: ClassVar[str] = "scope-atomics"

    device: str = ""
    block: str = ""

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite the kernels in place; returns whether there were atomics."""
        del context
        found = False
        with module.context:
            for kernel in kernels(module):
                for op in nested(kernel):
                    if op.name == "llvm.atomicrmw":
                        self._scope(op)
                        if not _is_shared(op) or not list(op.results[0].uses):
                            op.attributes["ordering"] = _ordering(_MONOTONIC)
                        found = True
                    elif op.name == "llvm.fence" and "syncscope" not in op.attributes:
                        op.attributes["syncscope"] = mlir.ir.StringAttr.get(self.device)
                    elif op.name == "llvm.cmpxchg":
                        self._scope(op)
                        op.attributes["success_ordering"] = _ordering(_MONOTONIC)
                        op.attributes["failure_ordering"] = _ordering(_MONOTONIC)
                        self._first_values(op)
                        found = True
        return found

    def _scope(self, op: Any) -> None:
        if "syncscope" not in op.attributes:
            scope = self.block if _is_shared(op) else self.device
            op.attributes["syncscope"] = mlir.ir.StringAttr.get(scope)

    def _first_values(self, exchange: Any) -> None:
        """Loads of the very address that is exchanged."""
        ir = mlir.ir
        width = ir.IntegerType(exchange.operands[1].type).width
        for use in exchange.operands[0].uses:
            load = use.owner.operation
            if load.name == "llvm.load" and load.attributes["ordering"].value == 0:
                load.attributes["ordering"] = _ordering(_MONOTONIC)
                load.attributes["alignment"] = ir.IntegerAttr.get(
                    ir.IntegerType.get_signless(64), width // 8
                )
                self._scope(load)


def _is_shared(op: Any) -> bool:
    """Whether an atomic is on the shared memory of a block."""
    return str(op.operands[0].type) == "!llvm.ptr<3>"


def _ordering(value: int) -> Any:
    ir = mlir.ir
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
