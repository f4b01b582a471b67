"""Stage S5: from form L to PTX."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from polyblocks.codegen import llvm
from polyblocks.codegen.gpu.machine_code import dump, optimized, refuse_calls
from polyblocks.pipeline import PassContext
from polyblocks.target import TargetDescription

TRIPLE = "nvptx64-nvidia-cuda"

#: Functions that the code takes from elsewhere.
_EXTERNAL = re.compile(r"^\s*\.extern \.func .*?\b([\w$]+)\s*[(\n]", re.MULTILINE)


def machine(target: TargetDescription) -> llvm.Machine:
    """What LLVM is told about the target."""
    ptx = target.properties["ptx"]
    return llvm.Machine(triple=TRIPLE, cpu=target.properties["cpu"], features=f"+ptx{ptx}")


def compile_ptx(module: Any, context: PassContext, level: int = 3) -> str:
    """PTX of all kernels.

    Args:
        module: in form L; stays as it is.
        context: with the target, and where dumps go.
        level: 0 to 3, how much LLVM optimizes.

    Raises:
        UnsupportedError: LLVM rejects the code, or it calls a function.
    """
    parsed, target_machine = _optimized(module, context, level)
    text = llvm.emit_assembly(parsed, target_machine)
    dump(context, "code.ptx", text)
    refuse_calls(_EXTERNAL.findall(text))
    return text


def optimized_ir(module: Any, context: PassContext) -> str:
    """The LLVM IR that :func:`compile_ptx` makes PTX of, with the places of the source."""
    return str(_optimized(module, context, places=True)[0])


def ptx_of(text: str, target: TargetDescription) -> str:
    """The PTX that LLVM's code generator makes of :func:`optimized_ir`, with its lines."""
    return llvm.emit_assembly(*llvm.parse(text, machine(target)))


def _optimized(
    module: Any, context: PassContext, level: int = 3, places: bool = False
) -> tuple[Any, Any]:
    # What has no LLVM intrinsic becomes inline assembly.
    return optimized(
        module,
        replace(machine(context.target), opt_level=level),
        context,
        "convert-nvvm-to-llvm,reconcile-unrealized-casts",
        places=places,
    )
