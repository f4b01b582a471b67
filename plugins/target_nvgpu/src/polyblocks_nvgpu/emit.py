"""Stage S5: from form L to PTX."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from polyblocks import events
from polyblocks.codegen import llvm
from polyblocks.codegen.gpu.machine_code import (
    STAGE,
    dump,
    optimized,
    optimized_part,
    refuse_calls,
    translated,
)
from polyblocks.codegen.gpu.plan import kernels, name_of
from polyblocks.codegen.split import parts_for, run_parts, split_module
from polyblocks.pipeline import PassContext
from polyblocks.target import TargetDescription
from polyblocks_nvgpu.group_units import as_assembly, as_functions

TRIPLE = "nvptx64-nvidia-cuda"

#: Ops without an LLVM intrinsic become inline assembly.
_PASSES = "convert-nvvm-to-llvm,reconcile-unrealized-casts"
#: How a kernel begins.
_ENTRY = ".visible .entry"
#: Functions that the code takes from elsewhere.
_EXTERNAL = re.compile(r"^\s*\.extern \.func .*?\b([\w$]+)\s*[(\n]", re.MULTILINE)


def machine(target: TargetDescription) -> llvm.Machine:
    """LLVM's description of the target."""
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
    spec = replace(machine(context.target), opt_level=level)
    source = translated(module, spec, context, _PASSES, rewrite=as_assembly)
    parts = parts_for(source) if level and context.dump_folder is None else 1
    names = {name_of(kernel) for kernel in kernels(module)}
    sources = split_module(source, names, parts)
    if len(sources) == 1:
        text = llvm.emit_assembly(*optimized(source, spec, context))
    else:
        with events.timed_pass(STAGE, "compile-parts"):
            text = joined(
                [part.decode() for part in run_parts([partial(_part, s, spec) for s in sources])]
            )
    dump(context, "code.ptx", text)
    refuse_calls(_EXTERNAL.findall(text))
    return text


def _part(source: str, spec: llvm.Machine) -> bytes:
    """The PTX of some of the kernels."""
    return llvm.emit_assembly(*optimized_part(source, spec)).encode()


def joined(parts: Sequence[str]) -> str:
    """One text of PTX of those that LLVM wrote for parts of a program.

    Text before the first kernel of a part, such as a constant, is the same in all parts. It comes
    before all kernels, where code that takes a kernel out of the text expects it.
    """
    heads: dict[str, None] = {}
    bodies = []
    for part in parts:
        begin = part.index(_ENTRY)
        heads.update(dict.fromkeys(part[:begin].splitlines()))
        bodies.append(part[begin:])
    return "\n".join([*heads, *bodies])


def optimized_ir(module: Any, context: PassContext) -> str:
    """The LLVM IR that :func:`compile_ptx` makes PTX of, with the places of the source."""
    spec = machine(context.target)
    text = translated(module, spec, context, _PASSES, rewrite=as_assembly, places=True)
    return as_functions(str(optimized(text, spec, context)[0]))


def ptx_of(text: str, target: TargetDescription) -> str:
    """The PTX that LLVM's code generator makes of :func:`optimized_ir`, with its lines."""
    return llvm.emit_assembly(*llvm.parse(as_assembly(text), machine(target)))
