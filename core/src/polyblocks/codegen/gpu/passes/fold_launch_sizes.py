"""fold-launch-sizes: sizes of grid and block are constants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks import mlir
from polyblocks.codegen.gpu.host_program import unsupported
from polyblocks.codegen.gpu.plan import kernels, name_of
from polyblocks.codegen.walk import nested

_KNOWN = {"gpu.block_dim": "known_block_size", "gpu.grid_dim": "known_grid_size"}
_AXES = "xyz"


@dataclass(frozen=True)
class FoldLaunchSizesPass:
    """Replace ``gpu.block_dim``, ``gpu.grid_dim`` and ids along axes of size 1 by constants.

    Not every chip has a register for the sizes, and the plan knows them.

    Before::

        gpu.func @k() kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
          %n = gpu.block_dim x
          %y = gpu.thread_id y

    After::

        gpu.func @k() kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
          %n = arith.constant 256 : index
          %y = arith.constant 0 : index
    """

    name: ClassVar[str] = "fold-launch-sizes"

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite the kernels in place; returns whether there was something to fold.

        Raises:
            UnsupportedError: a kernel asks for the size of its grid, and is launched with several.
        """
        del context
        ir = mlir.ir
        count = 0
        with module.context:
            for kernel in kernels(module):
                for op in list(nested(kernel)):
                    value = _constant(op, kernel)
                    if value is None:
                        continue
                    with op.location, ir.InsertionPoint(op):
                        constant = mlir.dialect("arith").ConstantOp(ir.IndexType.get(), value)
                    op.results[0].replace_all_uses_with(constant.result)
                    op.erase()
                    count += 1
        return count > 0


def _constant(op: Any, kernel: Any) -> int | None:
    if op.name in _KNOWN:
        sizes = _sizes(kernel, _KNOWN[op.name])
        if sizes is None:
            what = f"{op.name} of a kernel that is launched with several sizes"
            raise unsupported(op, what, name_of(kernel))
        return sizes[_axis(op)]
    if op.name in ("gpu.thread_id", "gpu.block_id"):
        sizes = _sizes(kernel, _KNOWN["gpu.block_dim" if "thread" in op.name else "gpu.grid_dim"])
        return 0 if sizes is not None and sizes[_axis(op)] == 1 else None
    return None


def _sizes(kernel: Any, name: str) -> list[int] | None:
    return list(kernel.attributes[name]) if name in kernel.attributes else None


def _axis(op: Any) -> int:
    # #gpu<dim x>
    return _AXES.index(str(op.attributes["dimension"]).rstrip(">")[-1])
