"""Copies that go on while their thread does: started, closed in groups, waited for."""

from __future__ import annotations

from typing import Any

from polyblocks.codegen.gpu.emission.code import Code
from polyblocks.mlir import ir
from polyblocks.target import AsynchronousCopies

#: Address spaces of memory and of shared memory, alike for all GPUs that LLVM knows.
GLOBAL, SHARED = 1, 3


class Pipeline:
    """Calls of a chip's functions for such copies at the current insertion point.

    Args:
        code: of the kernel.
        copies: the functions.
    """

    def __init__(self, code: Code, copies: AsynchronousCopies) -> None:
        self._code, self._copies = code, copies

    def start(self, to: Any, source: Any, count: Any, location: Any) -> None:
        """Copy to an address of shared memory, from one of memory (both of type index).

        Args:
            to, source: the addresses.
            count: bytes that are read (``i32``); the rest are zeros.
            location: of what is copied.
        """
        code = self._code
        operands = [code.pointer(to, SHARED), code.pointer(source, GLOBAL), count]
        code.intrinsic(self._copies.start, [], operands, location)

    def close(self) -> None:
        """Close the group of copies that were started since the one before."""
        self._code.intrinsic(self._copies.close, [], [])

    def wait(self, on_their_way: int) -> None:
        """Wait until at most ``on_their_way`` groups are pending."""
        code = self._code
        number = code.constant(ir.IntegerAttr.get(code.i32, on_their_way))
        code.intrinsic(self._copies.wait, [], [number])
