"""expand-atomics: atomic updates that no chip has are tried until they work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks import mlir
from polyblocks.codegen.gpu.plan import kernels
from polyblocks.codegen.walk import nested

#: ``arith::AtomicRMWKind`` -> the op that does it on values.
_OPS = {
    "mulf": "arith.mulf",
    "muli": "arith.muli",
    "maximumf": "arith.maximumf",
    "minimumf": "arith.minimumf",
}


@dataclass(frozen=True)
class ExpandAtomicsPass:
    """``memref.atomic_rmw`` of a kind without an instruction becomes a ``generic_atomic_rmw``.

    Before::

        %r = memref.atomic_rmw mulf %v, %m[%i] : (f32, memref<8xf32>) -> f32

    After::

        %r = memref.generic_atomic_rmw %m[%i] : memref<8xf32> {
        ^bb0(%old: f32):
          %new = arith.mulf %old, %v : f32
          memref.atomic_yield %new : f32
        }
    """

    name: ClassVar[str] = "expand-atomics"

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite the kernels in place; returns whether there was something to expand."""
        del context
        count = 0
        with module.context:
            kinds = mlir.dialect("arith").AtomicRMWKind
            names = {int(getattr(kinds, name)): op for name, op in _OPS.items()}
            for kernel in kernels(module):
                for op in list(nested(kernel)):
                    if op.name == "memref.atomic_rmw":
                        by = names.get(mlir.ir.IntegerAttr(op.attributes["kind"]).value)
                        if by is not None:
                            _expand(op, by)
                            count += 1
        return count > 0


def _expand(op: Any, by: str) -> None:
    ir = mlir.ir
    type_ = op.results[0].type
    value, memref, *indices = op.operands
    with op.location, ir.InsertionPoint(op):
        new = ir.Operation.create(
            "memref.generic_atomic_rmw", results=[type_], operands=[memref, *indices], regions=1
        )
        block = new.regions[0].blocks.append(type_)
        with ir.InsertionPoint(block):
            operands = [block.arguments[0], value]
            result = ir.Operation.create(by, results=[type_], operands=operands).result
            ir.Operation.create("memref.atomic_yield", operands=[result])
    op.results[0].replace_all_uses_with(new.result)
    op.erase()
