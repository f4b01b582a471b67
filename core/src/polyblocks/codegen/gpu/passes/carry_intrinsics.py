"""hide-intrinsics, show-intrinsics: LLVM's math passes by a conversion that wants a library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks import mlir
from polyblocks.attributes import HIDDEN_ATTRIBUTE
from polyblocks.codegen.gpu.plan import kernels
from polyblocks.codegen.walk import nested

_OP = "llvm.intr."
_FLAGS = "fastmathFlags"
#: Ops of the arith dialect that would be calls as well.
_ARITH = {"arith.maxnumf": f"{_OP}maxnum", "arith.minnumf": f"{_OP}minnum"}


@dataclass(frozen=True)
class HideIntrinsicsPass:
    """Write math intrinsics of the LLVM dialect as calls by name.

    Conversions to GPU dialects replace the math of MLIR, and of the LLVM dialect, by calls of a
    vendor's library. Square roots and roundings are instructions of every GPU.

    Before::

        %r = llvm.intr.sqrt(%x) : (f32) -> f32

    After::

        %r = llvm.call_intrinsic "llvm.sqrt"(%x) {polyblocks.hidden} : (f32) -> f32
    """

    name: ClassVar[str] = "hide-intrinsics"

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite the kernels in place; returns whether there were any."""
        del context

        def by_name(op: Any) -> tuple[str, dict[str, Any]] | None:
            ir = mlir.ir
            name = _ARITH.get(op.name, op.name)
            if not name.startswith(_OP) or not {_FLAGS, "fastmath"} & set(op.attributes):
                return None
            return "llvm.call_intrinsic", {
                "intrin": ir.StringAttr.get(f"llvm.{name.removeprefix(_OP)}"),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(op.operands), 0]),
                "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
                HIDDEN_ATTRIBUTE: ir.UnitAttr.get(),
            }

        return _replace(module, by_name)


@dataclass(frozen=True)
class ShowIntrinsicsPass:
    """The inverse of hide-intrinsics."""

    name: ClassVar[str] = "show-intrinsics"

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite the kernels in place; returns whether there were any."""
        del context

        def as_op(op: Any) -> tuple[str, dict[str, Any]] | None:
            if op.name != "llvm.call_intrinsic" or HIDDEN_ATTRIBUTE not in op.attributes:
                return None
            return f"{_OP}{op.attributes['intrin'].value.removeprefix('llvm.')}", {}

        return _replace(module, as_op)


def _replace(module: Any, new: Any) -> bool:
    ir = mlir.ir
    count = 0
    with module.context:
        for kernel in kernels(module):
            for op in list(nested(kernel)):
                wanted = new(op)
                if wanted is None:
                    continue
                name, attributes = wanted
                with op.location, ir.InsertionPoint(op):
                    created = ir.Operation.create(
                        name,
                        results=[result.type for result in op.results],
                        operands=list(op.operands),
                        attributes={**attributes, _FLAGS: _flags(op)},
                    )
                op.results[0].replace_all_uses_with(created.results[0])
                op.erase()
                count += 1
    return count > 0


def _flags(op: Any) -> Any:
    """The fast-math flags of an op, as those of the LLVM dialect."""
    if _FLAGS in op.attributes:
        return op.attributes[_FLAGS]
    return mlir.ir.Attribute.parse(str(op.attributes["fastmath"]).replace("#arith.", "#llvm."))
