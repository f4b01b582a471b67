"""Stage S5: from form L to a relocatable object file."""

from __future__ import annotations

from typing import Any

from polyblocks import events
from polyblocks.codegen import llvm
from polyblocks.codegen.gpu.machine_code import STAGE, dump, optimized, translated
from polyblocks.pipeline import PassContext
from polyblocks.target import TargetDescription

TRIPLE = "amdgcn-amd-amdhsa"

#: Code object version 5: what ROCm 5.3 and later load.
_VERSION = '!{i32 1, !"amdhsa_code_object_version", i32 500}'
_FLAGS = "!llvm.module.flags = !{"
#: Newer LLVM prints this attribute without a value.
_UNIFORM = '"uniform-work-group-size"'


def machine(target: TargetDescription) -> llvm.Machine:
    """LLVM's description of the target."""
    return llvm.Machine(triple=TRIPLE, cpu=target.properties["cpu"])


def compile_object(module: Any, context: PassContext) -> bytes:
    """The object file of all kernels.

    Args:
        module: in form L; stays as it is.
        context: with the target, and where dumps go.

    Raises:
        UnsupportedError: LLVM rejects the code, or it calls a function.
    """
    parsed, target_machine = _optimized(module, context)
    if context.dump_folder is not None:
        # Of a copy: this code generator changes the module, and does not take it twice.
        copy = llvm.parse(str(parsed), machine(context.target))
        dump(context, "code.s", llvm.emit_assembly(*copy))
    with events.timed_pass(STAGE, "emit-object"):
        return llvm.emit_object(parsed, target_machine)


def assembly(module: Any, context: PassContext) -> str:
    """The assembly that :func:`compile_object` makes an object of."""
    parsed, target_machine = _optimized(module, context)
    return llvm.emit_assembly(parsed, target_machine)


def optimized_ir(module: Any, context: PassContext) -> str:
    """The LLVM IR that :func:`compile_object` makes an object of, with the places of the source."""
    return str(_optimized(module, context, places=True)[0])


def _optimized(module: Any, context: PassContext, places: bool = False) -> tuple[Any, Any]:
    spec = machine(context.target)
    text = translated(module, spec, context, rewrite=_rewrite, places=places)
    return optimized(text, spec, context)


def _rewrite(text: str) -> str:
    """Name the version of the code object, and spell attributes as LLVM 22 does."""
    number = 9900
    text = text.replace(f"{_UNIFORM} ", f'{_UNIFORM}="true" ')
    if _FLAGS in text:
        text = text.replace(_FLAGS, f"{_FLAGS}!{number}, ", 1)
    else:
        text += f"\n{_FLAGS}!{number}}}\n"
    return f"{text}\n!{number} = {_VERSION}\n"
