"""Stage S5: from the LLVM dialect to an object file, with events and dumps."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from polyblocks import events
from polyblocks.attributes import KIND_ATTRIBUTE
from polyblocks.codegen import llvm
from polyblocks.codegen.loop_hints import SCALAR_LOOPS
from polyblocks.codegen.split import parts_for, run_parts, split_module
from polyblocks.errors import UnsupportedError
from polyblocks.isolation.forks import fork_lock
from polyblocks.pipeline import PassContext
from polyblocks.target import TargetDescription
from polyblocks_cpu.archs import X86
from polyblocks_cpu.brief import vector_bits
from polyblocks_cpu.instructions.shuffle_barriers import hide_shuffles
from polyblocks_cpu.instructions.wide_ldexp import take_apart
from polyblocks_cpu.load import CLOCK, PROFILE
from polyblocks_cpu.objects.data_object import data_object, take_out
from polyblocks_cpu.objects.elf import read_symbols
from polyblocks_cpu.openmp import SYMBOLS
from polyblocks_cpu.passes.emit_entry import ENTRY
from polyblocks_cpu.passes.outline_kernels import LOOP

STAGE = "S5"

LLVM_OPTIONS = {
    # LLVM makes branches of selects on what a loop has just loaded. Numbers choose at random (half
    # of what a ReLU sees is negative), and a wrong guess costs more than the wait it saves.
    "x86_64": ("-x86-cmov-converter=false",),
}
"""LLVM options that only its command line sets, by family of chips."""

#: Features of scalar code, whose loops LLVM vectorizes, by family of chips. Loops with loads from a
#: place each that are left to it hardly compute: one by one the loads take no longer, and a third
#: of the time where they miss the first cache (Zen 4). A scatter of what a failed check stores
#: takes ten times as long as a branch, though no lane fails.
SCALAR_FEATURES = {X86: "+prefer-no-gather,+prefer-no-scatter"}


def compile_llvm(
    module: Any, context: PassContext, kernels: Sequence[Mapping[str, Any]]
) -> list[bytes]:
    """Object files from a module in the LLVM dialect; the first one holds the entry.

    Large constants are an object of their own, the last one, where objects are ELF.

    Args:
        module: the module after S4; loses them.
        context: with the target, and where dumps go.
        kernels: rows of the manifest: functions that may go to another object.

    Raises:
        UnsupportedError: LLVM rejects the code.
    """
    events.emit("stage-begin", stage=STAGE)
    begin = time.perf_counter()
    with events.timed_pass(STAGE, "translate-to-llvm"):
        constants = take_out(module) if "linux" in machine(context.target).triple else {}
        text, spec = _llvm_text(module, context.target, kernels)
    _dump(context, "input.ll", text)
    parts = parts_for(text) if context.dump_folder is None else 1
    texts = split_module(text, {kernel["name"] for kernel in kernels}, parts)
    if parts == 1:
        with fork_lock:
            data = _compile_here(texts, spec, context)
    else:
        with events.timed_pass(STAGE, "compile-parts"):
            data = run_parts([partial(_compile_part, part, spec) for part in texts])
    if constants:
        data.append(data_object(constants, data[0]))
    events.emit("stage-end", stage=STAGE, seconds=time.perf_counter() - begin)
    return data


def _compile_here(texts: list[str], spec: llvm.Machine, context: PassContext) -> list[bytes]:
    with events.timed_pass(STAGE, "optimize-llvm"):
        optimized = [_optimize(text, spec) for text in texts]
    if context.dump_folder is not None:
        _dump(context, "optimized.ll", "\n".join(str(parts[0]) for parts in optimized))
        _dump(context, "code.s", _assembly(optimized))
    with events.timed_pass(STAGE, "emit-object"):
        return [llvm.emit_object(*parts) for parts in optimized]


def _compile_part(text: str, spec: llvm.Machine) -> bytes:
    return llvm.emit_object(*_optimize(text, spec))


def _optimize(text: str, spec: llvm.Machine) -> tuple[Any, Any, bool]:
    """Arguments of :func:`polyblocks.codegen.llvm.emit_object`.

    Addresses of vector code are as simple as can be already; see ``hoist-addresses``.
    """
    if spec.triple.startswith(X86) and SCALAR_LOOPS not in text:
        text = hide_shuffles(text)
    module, target_machine = llvm.optimize(text, spec)
    return take_apart(module, target_machine, spec), target_machine, SCALAR_LOOPS in text


def assembly(module: Any, target: TargetDescription, kernels: Sequence[Mapping[str, Any]]) -> str:
    """The assembly that :func:`compile_llvm` makes objects of."""
    text, spec = _llvm_text(module, target, kernels)
    texts = split_module(text, {kernel["name"] for kernel in kernels}, 1)
    return _assembly([_optimize(text, spec) for text in texts])


def _assembly(optimized: list[tuple[Any, Any, bool]]) -> str:
    return "\n".join(llvm.emit_assembly(*parts) for parts in optimized)


def _llvm_text(
    module: Any, target: TargetDescription, kernels: Sequence[Mapping[str, Any]]
) -> tuple[str, llvm.Machine]:
    """LLVM IR of the module, in which no function is inlined, and what it is for.

    A kernel that is called many times, and the team that runs it, stay one function each; in a
    long ``@main`` they would take LLVM longer than all kernels together.
    """
    from polyblocks import mlir

    kinds = {
        op.operation.attributes["sym_name"].value: op.operation.attributes.get(KIND_ATTRIBUTE, None)
        for op in module.body.operations
        if op.operation.name == "llvm.func"
    }
    loops = {name for name, kind in kinds.items() if kind is not None and kind.value == LOOP}
    exports = {ENTRY, PROFILE}
    text = mlir.translate_to_llvmir(module)
    spec = replace(machine(target), vector_bits=vector_bits(target, module, kernels, text))
    return llvm.prepare(text, spec, exports, kinds.keys() - exports, loops), spec


def machine(target: TargetDescription) -> llvm.Machine:
    """LLVM's description of the target: the host's triple, or Linux of another family."""
    properties = target.properties
    triple = llvm.host_triple()
    if triple.partition("-")[0].replace("arm64", "aarch64") != properties["family"]:
        triple = f"{properties['family']}-unknown-linux-gnu"
    return llvm.Machine(
        triple=triple,
        cpu=properties["cpu"],
        features=",".join(properties["features"]),
        scalar_features=SCALAR_FEATURES.get(properties["family"], ""),
        vector_bits=target.vector_bits,
        threads_may_flush=True,
        options=LLVM_OPTIONS.get(properties["family"], ()),
    )


def checked_symbols(objects: Sequence[bytes]) -> dict[str, int]:
    """Bytes of code by function; of an object of another format than ELF nothing is known.

    Raises:
        UnsupportedError: they call anything but each other, the OpenMP runtime and, to be timed,
            the clock; names it.
    """
    known = [symbols for symbols in map(read_symbols, objects) if symbols is not None]
    functions = {name: size for symbols in known for name, size in symbols.functions.items()}
    undefined = {name for symbols in known for name in symbols.undefined}
    data = {name for symbols in known for name in symbols.data}
    foreign = sorted(undefined - functions.keys() - data - {*SYMBOLS, CLOCK})
    if "malloc" in foreign:
        # Buffers of static size are planned into the workspace or lie on the stack.
        raise UnsupportedError("it needs a buffer whose size depends on the data")
    if foreign:
        raise UnsupportedError(
            f"internal error: the generated code calls {', '.join(foreign)}; every function that "
            "it calls must be generated, please report this program"
        )
    return functions


def _dump(context: PassContext, name: str, text: str) -> None:
    if context.dump_folder is not None:
        (context.dump_folder / f"{STAGE}-{name}").write_text(text)
