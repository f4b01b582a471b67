"""The table of the llvm dialect."""

from __future__ import annotations

from collections.abc import Mapping

from polyblocks.simt import aggregates, atomics, bit_intrinsics, floats, integers, memory_ops
from polyblocks.simt.semantics import Operation

#: Every op of the llvm dialect that kernels of an MLIR pipeline have, other than control flow,
#: constants and calls, which `decode` knows.
LLVM: Mapping[str, Operation] = {
    **integers.OPERATIONS,
    **bit_intrinsics.OPERATIONS,
    **floats.OPERATIONS,
    **aggregates.OPERATIONS,
    **memory_ops.OPERATIONS,
    **atomics.OPERATIONS,
}
