"""check-kernels, check-lowered: kernels hold nothing that has no instruction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.codegen.gpu.host_program import unsupported
from polyblocks.codegen.gpu.plan import kernel_module, kernels, name_of
from polyblocks.codegen.walk import nested

_DIALECTS = ("affine", "arith", "cf", "complex", "index", "llvm", "memref", "scf", "ub", "vector")
_GPU = frozenset(
    "barrier block_id dynamic_shared_memory func lane_id return shuffle thread_id".split()
)
#: Math operations with an instruction on every GPU; the others are expanded before.
_MATH = frozenset(
    "absf absi ceil copysign ctlz ctpop cttz floor fma round roundeven sqrt trunc".split()
)
#: They would become calls of a library.
_NOT = frozenset(
    {"arith.remf", "cf.assert", "memref.alloc", "memref.copy", "memref.dealloc", "vector.print"}
)


@dataclass(frozen=True)
class CheckKernelsPass:
    """Refuse ops that the conversion to LLVM does not know or makes library calls of.

    Attributes:
        dialects: the target's own dialects.
    """

    name: ClassVar[str] = "check-kernels"

    dialects: tuple[str, ...] = ()

    def run(self, module: Any, context: Any) -> bool:
        """Look at every op; changes nothing.

        Raises:
            UnsupportedError: names the op, the kernel and the source line.
        """
        del context
        known = {"gpu": _GPU, "math": _MATH}
        for kernel in kernels(module):
            for op in nested(kernel):
                dialect, _, rest = op.name.partition(".")
                ok = rest in known[dialect] if dialect in known else dialect in _DIALECTS
                if (not ok and dialect not in self.dialects) or op.name in _NOT:
                    raise unsupported(op, op.name, name_of(kernel))
        return False


@dataclass(frozen=True)
class CheckLoweredPass:
    """Refuse kernels in which something is left that LLVM has no instruction for, or a call.

    Attributes:
        dialects: the target's own dialects.
    """

    name: ClassVar[str] = "check-lowered"

    dialects: tuple[str, ...] = ()

    def run(self, module: Any, context: Any) -> bool:
        """Look at every op; changes nothing.

        Raises:
            UnsupportedError: names the op, the kernel and the source line.
        """
        del context
        holder = kernel_module(module)
        for top in holder.regions[0].blocks[0].operations if holder is not None else ():
            top = top.operation
            name = name_of(top) if "sym_name" in top.attributes else ""
            if top.name == "llvm.func" and not len(top.regions[0].blocks):
                self._refuse_calls(holder, name)
                continue
            for op in nested(top):
                if op.name.partition(".")[0] not in ("llvm", *self.dialects):
                    raise unsupported(op, op.name, name)
        return False

    def _refuse_calls(self, holder: Any, callee: str) -> None:
        for op in nested(holder):
            if op.name == "llvm.call" and f"@{callee}" in str(op.attributes.get("callee", "")):
                around = op
                while around.name != "llvm.func":
                    around = around.parent.operation
                raise unsupported(op, f"a call of '{callee}'", name_of(around))
