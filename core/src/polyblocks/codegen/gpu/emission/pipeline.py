"""Copies that go on while their thread does: started, closed in groups, waited for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyblocks.codegen.gpu.emission.code import Code
from polyblocks.mlir import ir
from polyblocks.target import AsynchronousCopies


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
        operands = [self._pointer(to, 3), self._pointer(source, 1), count]
        self._call(self._copies.start, operands, location)

    def close(self) -> None:
        """Close the group of copies that were started since the one before."""
        self._call(self._copies.close, [])

    def wait(self, on_their_way: int) -> None:
        """Wait for all groups but so many."""
        code = self._code
        number = code.constant(ir.IntegerAttr.get(code.i32, on_their_way))
        self._call(self._copies.wait, [number])

    def _pointer(self, at: Any, space: int) -> Any:
        code = self._code
        number = code.value("arith.index_cast", code.i64, at)
        return code.value("llvm.inttoptr", ir.Type.parse(f"!llvm.ptr<{space}>"), number)

    def _call(self, name: str, operands: Sequence[Any], location: Any = None) -> None:
        attributes = {
            "intrin": ir.StringAttr.get(name),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
            "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        }
        self._code.op("llvm.call_intrinsic", [], operands, attributes, location)
