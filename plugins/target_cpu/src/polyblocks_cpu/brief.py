"""Programs that are over so soon that the clock matters more than the width of their vectors.

Intel's cores lower their clock for some hundred microseconds after arithmetic on 512 bits, so what
the caller does then takes about a tenth longer: on a Sapphire Rapids a call that takes 5 us in a
framework takes 0.5 us more for the sake of one such addition. Halves of the vectors cost a program
at most its own time once more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from polyblocks.target import TargetDescription
from polyblocks_cpu.passes.outline_kernels import LOOP

#: Seconds that a brief program is predicted to take at most: a tenth of what a framework takes for
#: a call of ten arguments.
BRIEF_S = 1e-6
_FULL, _HALF = 512, 256

#: Intrinsics of 512-bit registers, which LLVM cannot split.
_NAMED = re.compile(r"@llvm\.x86\.[\w.]*\b512\b")


def vector_bits(
    target: TargetDescription, module: Any, kernels: Sequence[Mapping[str, Any]], text: str
) -> int:
    """The width of the registers that a program uses.

    Args:
        target: a description made by this target.
        module: the program in the LLVM dialect.
        kernels: rows of the manifest.
        text: the program's LLVM IR.
    """
    bits = target.vector_bits
    if bits != _FULL or not target.properties["lowers_clock"] or _NAMED.search(text):
        return bits
    return _HALF if _is_brief(module, kernels) else bits


def _is_brief(module: Any, kernels: Sequence[Mapping[str, Any]]) -> bool:
    seconds = 0.0
    for kernel in kernels:
        predicted = (kernel.get("estimate") or {}).get("predicted_seconds")
        # Loops of the program, in a kernel or around some, may run for any time.
        if predicted is None or kernel["kind"] == LOOP:
            return False
        seconds += predicted
    names = {kernel["name"] for kernel in kernels}
    around = (op for op in module.body.operations if op.operation.name == "llvm.func")
    is_straight = all(
        len(op.regions[0].blocks) <= 1 or op.attributes["sym_name"].value in names for op in around
    )
    return is_straight and seconds < BRIEF_S
