"""AVX-512's instructions."""

from __future__ import annotations

from typing import Any

from polyblocks_cpu.instructions.registers import call


def intrinsic(name: str, *operands: Any) -> Any:
    """One instruction, whose result has the type of the first operand.

    Args:
        name: of LLVM's intrinsic, behind ``llvm.x86.avx512.``.
        operands: as it takes them.
    """
    return call(f"llvm.x86.avx512.{name}", *operands)
