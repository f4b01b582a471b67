"""Stage S5 of GPUs as far as it is the same for all: from form L to an optimized LLVM module."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from polyblocks import events
from polyblocks.codegen import llvm
from polyblocks.codegen.gpu.line_numbers import attach_tables, number_places
from polyblocks.codegen.gpu.plan import kernel_module, kernels, name_of
from polyblocks.codegen.gpu.resident_blocks import block_sizes
from polyblocks.errors import UnsupportedError
from polyblocks.pipeline import PassContext, bytecode

STAGE = "S5"


@contextmanager
def stage() -> Iterator[None]:
    """Tell watchers that S5 runs."""
    events.emit("stage-begin", stage=STAGE)
    begin = time.perf_counter()
    yield
    events.emit("stage-end", stage=STAGE, seconds=time.perf_counter() - begin)


def translated(
    module: Any,
    machine: llvm.Machine,
    context: PassContext,
    textual: str = "",
    rewrite: Callable[[str], str] = str,
    places: bool = False,
) -> str:
    """The LLVM IR of the kernels, as MLIR translates it.

    Args:
        module: in form L; stays as it is.
        machine: what it is for.
        context: where dumps go.
        textual: passes inside of the ``gpu.module`` right before it is translated.
        rewrite: changes the text of the LLVM IR, for what the two dialects say differently.
        places: keep the places of the source, see :mod:`polyblocks.codegen.gpu.line_numbers`.
            The code is the same with and without them.
    """
    from polyblocks import mlir

    names = [name_of(kernel) for kernel in kernels(module)]
    with events.timed_pass(STAGE, "translate-to-llvm"):
        copy = mlir.parse(bytecode(module), module.context)
        lines = number_places(copy) if places else []
        if textual:
            mlir.run_textual(copy, f"gpu.module({textual})")
        holder = kernel_module(copy)
        # Without it integers of 64 bits are aligned to 4 bytes, and read in two halves.
        layout = mlir.ir.StringAttr.get(llvm.data_layout(machine), copy.context)
        holder.attributes["llvm.data_layout"] = layout
        text = str(mlir.dialect("llvm").translate_module_to_llvmir(holder))
    text = rewrite(llvm.attach_attributes(text, machine, names))
    if places:
        text = attach_tables(text, lines, block_sizes(module))
    dump(context, "input.ll", text)
    return text


def optimized(text: str, machine: llvm.Machine, context: PassContext) -> tuple[Any, Any]:
    """As :func:`optimized_part`, of all kernels, with an event and a dump."""
    with events.timed_pass(STAGE, "optimize-llvm"):
        parsed, target_machine = _optimized(text, machine)
    dump(context, "optimized.ll", str(parsed))
    refuse_calls(_called(parsed))
    return parsed, target_machine


def optimized_part(text: str, machine: llvm.Machine) -> tuple[Any, Any]:
    """LLVM's module of the text of some kernels, optimized, and its target machine.

    Raises:
        UnsupportedError: LLVM does not accept the code, or the code calls a function.
    """
    parsed, target_machine = _optimized(text, machine)
    refuse_calls(_called(parsed))
    return parsed, target_machine


def _optimized(text: str, machine: llvm.Machine) -> tuple[Any, Any]:
    parsed, target_machine = llvm.parse(text, machine)
    llvm.optimize_kernels(parsed, target_machine, machine.opt_level)
    return parsed, target_machine


def _called(parsed: Any) -> list[str]:
    """Functions that a module of LLVM's calls and does not define."""
    return [f.name for f in parsed.functions if f.is_declaration and not f.name.startswith("llvm.")]


def refuse_calls(names: Any) -> None:
    """No code of others is linked to kernels.

    Args:
        names: functions that the code calls and does not define.

    Raises:
        UnsupportedError: there are some; names them.
    """
    foreign = sorted(names)
    if foreign:
        raise UnsupportedError(
            f"internal error: the generated kernels call {', '.join(foreign)}; every function that "
            "they call must be generated, please report this program"
        )


def dump(context: PassContext, name: str, text: str) -> None:
    """Write a dump of this stage, if dumps are wanted."""
    if context.dump_folder is not None:
        (context.dump_folder / f"{STAGE}-{name}").write_text(text)
