"""LLVM IR text -> optimized object file, through llvmlite; shared by the targets.

llvmlite holds one lock around every call, so threads do not speed this up. Nothing is cached in
the process: a target machine costs 2 ms, and compilations run in forked children.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from polyblocks.codegen.float_literals import rewrite_float_literals
from polyblocks.codegen.loop_hints import ONLY_SCALAR, SCALAR_LOOPS, has_vectors, mark_loops
from polyblocks.errors import UnsupportedError

#: Number of the attribute group that this module adds; MLIR numbers its own from 0.
_GROUP = 9000

#: Longest block in which LLVM looks for straight-line code to vectorize. Its time grows faster than
#: the block: nine tenths of all for 3000 instructions. The same for the loops of a scalar function:
#: where their bodies become vectors they are unrolled, one after the other into one block, and the
#: code generator's time grows with the square of the loads in it (15 s for 32 sums of 64 rows).
SLP_INSTRUCTIONS = 1000

#: Bits that the stack is aligned to where a function begins.
_STACK_BITS = 128

_DEFINE = re.compile(
    # A word first: where it stands is found thirty times as fast as the begin of a line.
    r"define (?<=^define )(?P<linkage>internal |private |linkonce_odr )?"
    r"(?P<middle>[^@\n]*@(?P<name>[\w.$-]+|\"[^\"]+\")\(.*\)[^{\n]*)\{$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Machine:
    """The machine that LLVM generates code for.

    Attributes:
        triple: LLVM target triple; empty for the host's.
        cpu: LLVM's ``target-cpu``.
        features: comma-separated LLVM features (``+x,-y``).
        scalar_features: more of them, of functions without vectors whose loops LLVM vectorizes.
        vector_bits: vector width that the vectorizers prefer; 0 leaves it to LLVM.
        opt_level: 0 to 3, of the passes and of the code generator.
        codemodel: LLVM's name of the code model.
        threads_may_flush: whether threads that call the code may take denormal numbers for 0, as
            those of XLA and TensorFlow do.
        options: of LLVM's command line (``-name=value``), where no other interface exists. They
            hold for the whole process once set, so they should name a family of chips.
    """

    triple: str
    cpu: str
    features: str = ""
    scalar_features: str = ""
    vector_bits: int = 0
    opt_level: int = 3
    codemodel: str = "small"
    threads_may_flush: bool = False
    options: tuple[str, ...] = ()


def host_triple() -> str:
    """The triple of the running process."""
    from llvmlite import binding

    return str(binding.get_process_triple())


def prepare(
    text: str,
    machine: Machine,
    exports: Collection[str],
    noinline: Collection[str],
    loops: Collection[str] = (),
) -> str:
    """LLVM IR with linkage and function attributes set, and loops of vector code marked.

    Args:
        text: LLVM IR as MLIR prints it.
        machine: what it is for.
        exports: names of the functions that stay visible; all others become internal.
        noinline: names of functions that are never inlined.
        loops: names of functions that are loops around vector code, see :func:`mark_loops`.

    Returns:
        The IR's text.
    """
    text = mark_loops(attach_attributes(text, machine, exports, noinline), loops)
    if not machine.scalar_features or ONLY_SCALAR not in text:
        return text
    return _with_scalar_features(text, machine)


def _with_scalar_features(text: str, machine: Machine) -> str:
    """Groups of attributes of their own for the functions without vectors."""
    features = ",".join(filter(None, (machine.features, machine.scalar_features)))
    groups = _groups(replace(machine, features=features), _GROUP + 2)
    for group in (_GROUP, _GROUP + 1):
        text = text.replace(f" #{group} {ONLY_SCALAR} ", f" #{group + 2} {ONLY_SCALAR} ")
    return f"{text}\n{groups}"


def attach_attributes(
    text: str,
    machine: Machine,
    exports: Collection[str],
    noinline: Collection[str] = (),
) -> str:
    """LLVM IR with linkage and function attributes set on every definition.

    Args:
        text: LLVM IR as MLIR prints it.
        machine: what it is for.
        exports: names of the functions that stay visible; all others become internal.
        noinline: names of functions that are never inlined.

    Returns:
        The IR's text.
    """

    def attach(match: re.Match[str]) -> str:
        name = match["name"].strip('"')
        linkage = "" if name in exports else "internal "
        group = _GROUP + 1 if name in noinline else _GROUP
        head, bang, metadata = match["middle"].rstrip().partition(" !")
        return f"define {linkage}{head} #{group}{bang}{metadata} {{"

    return f"{_DEFINE.sub(attach, text)}\n{_groups(machine, _GROUP)}"


def _groups(machine: Machine, number: int) -> str:
    """The attributes of functions that may be inlined; the next number is of the others."""
    common = " ".join(function_attributes(machine))
    return (
        f"attributes #{number} = {{ {common} }}\n"
        f"attributes #{number + 1} = {{ noinline {common} }}\n"
    )


def function_attributes(machine: Machine) -> list[str]:
    """The attributes of every function that is compiled for a machine, as LLVM writes them."""
    attributes = [
        "nounwind",
        "mustprogress",
        # Nobody reads the floating-point status flags or unmasks traps.
        '"no-trapping-math"="true"',
        # No loop becomes a call of memset or memcpy: generated code calls no library.
        '"no-builtins"',
        f'"target-cpu"="{machine.cpu}"',
    ]
    if machine.threads_may_flush:
        # Else x == 0 becomes a question about bits, which denormals answer differently.
        attributes.append('"denormal-fp-math"="dynamic,dynamic"')
    if machine.features:
        attributes.append(f'"target-features"="{machine.features}"')
    if machine.vector_bits:
        attributes.append(f'"prefer-vector-width"="{machine.vector_bits}"')
        # Without it longer vectors of the code are registers where a chip has some.
        attributes.append(f'"min-legal-vector-width"="{machine.vector_bits}"')
    if machine.vector_bits > _STACK_BITS:
        # LLVM aligns what it spills only in functions with a frame pointer. Where the stack begins
        # is chance, and a spilled vector that lies on two pages makes a loop take three times as
        # long.
        attributes.append('"frame-pointer"="all"')
    return attributes


def optimize(text: str, machine: Machine) -> tuple[Any, Any]:
    """Parse and optimize LLVM IR.

    Args:
        text: what :func:`prepare` returned.
        machine: what it is for.

    Returns:
        The llvmlite module and target machine, for :func:`emit_object` and :func:`emit_assembly`.

    Raises:
        UnsupportedError: LLVM does not accept the IR; the message is LLVM's.
    """
    # A stencil reads x[i+1] now and as x[i] in the next iteration. Carried over in a register
    # (load PRE) it becomes a shuffle once the loop is vectorized, which costs more than an
    # unaligned load: a 3x3 convolution takes 12 % longer.
    _set_load_elimination(False)
    _set_vector_combining(True)
    module, target_machine = parse(text, machine)
    if machine.opt_level and SCALAR_LOOPS in text:
        straight = longest_block(text) <= SLP_INSTRUCTIONS and not has_long_loops(text)
        _optimize_loops(module, target_machine, machine.opt_level, slp=straight)
    elif machine.opt_level:
        _clean_up(module, target_machine, machine.opt_level)
    return module, target_machine


def data_layout(machine: Machine) -> str:
    """Sizes and alignments of types, as LLVM writes them."""
    return str(_target_machine(machine).target_data)


def parse(text: str, machine: Machine) -> tuple[Any, Any]:
    """Parse LLVM IR.

    Args:
        text: LLVM IR as MLIR prints it, with attributes.
        machine: what it is for.

    Returns:
        The llvmlite module, as it is, and target machine.

    Raises:
        UnsupportedError: LLVM does not accept the IR; the message is LLVM's.
    """
    from llvmlite import binding

    target_machine = _target_machine(machine)
    try:
        module = binding.parse_assembly(rewrite_float_literals(text))
        module.triple = target_machine.triple
        module.data_layout = str(target_machine.target_data)
        module.verify()
    except RuntimeError as error:
        raise UnsupportedError(f"LLVM rejects the generated code: {_reason(error)}") from error
    return module, target_machine


def optimize_kernels(module: Any, target_machine: Any, level: int) -> None:
    """LLVM's own pipeline for the code of single threads, in which no loop is worth vectorizing.

    Args:
        module: of :func:`parse`; changed in place.
        target_machine: of :func:`parse`.
        level: 0 to 3. With 0, private memory becomes registers and all else stays as it is.
    """
    from llvmlite import binding

    if not level:
        _run_on_functions(module, target_machine, level, ["sroa"])
        return
    _set_load_elimination(True)
    # For some chips LLVM takes loads of vectors apart, and its code generator puts them together
    # again. The machine code is the same without, and the IR says how wide the accesses are.
    _set_vector_combining(False)
    tuning = binding.create_pipeline_tuning_options(level)
    tuning.loop_vectorization = False
    tuning.loop_interleaving = False
    tuning.slp_vectorization = True
    tuning.loop_unrolling = True
    builder = binding.create_pass_builder(target_machine, tuning)
    builder.getModulePassManager().run(module, builder)


def longest_block(text: str) -> int:
    """Instructions of the longest basic block of LLVM IR, as MLIR prints it."""
    longest = count = 0
    for line in text.splitlines():
        count = count + 1 if line.startswith("  ") else 0
        longest = max(longest, count)
    return longest


def has_long_loops(text: str) -> bool:
    """Whether a function has scalar loops, no vectors, and more code than LLVM unrolls in time."""
    for definition in text.split("\ndefine "):
        head, _, body = definition.partition("\n")
        if SCALAR_LOOPS in head and body.count("\n") > SLP_INSTRUCTIONS and not has_vectors(body):
            return True
    return False


def _optimize_loops(module: Any, target_machine: Any, level: int, *, slp: bool) -> None:
    """LLVM's own pipeline, which vectorizes loops and, with ``slp``, straight-line code."""
    from llvmlite import binding

    tuning = binding.create_pipeline_tuning_options(level)
    tuning.loop_vectorization = True
    tuning.slp_vectorization = slp
    tuning.loop_interleaving = True
    tuning.loop_unrolling = True
    builder = binding.create_pass_builder(target_machine, tuning)
    builder.getModulePassManager().run(module, builder)


def _clean_up(module: Any, target_machine: Any, level: int) -> None:
    """Optimize code whose loops are vectorized already, or which has no loops.

    Invariants are outside of loops, values in registers and equal ones merged before it comes
    here. The whole pipeline takes eight times as long, and its code runs no faster.
    """

    # Index arithmetic first, so that sums of what a loop leaves unchanged come together.
    names = ["sroa", "simplify_cfg", "reassociate", "instruction_combine"]
    _run_on_functions(module, target_machine, level, names)


def _run_on_functions(module: Any, target_machine: Any, level: int, names: list[str]) -> None:
    """Some of LLVM's passes, one after the other, as llvmlite names them."""
    from llvmlite import binding

    builder = binding.create_pass_builder(
        target_machine, binding.create_pipeline_tuning_options(level)
    )
    manager = binding.create_new_function_pass_manager()
    for name in names:
        getattr(manager, f"add_{name}_pass")()
    for function in module.functions:
        if not function.is_declaration:
            manager.run(function, builder)


def emit_object(module: Any, target_machine: Any, strength_reduction: bool = True) -> bytes:
    """The relocatable object file of an optimized module.

    Args:
        module: the optimized module.
        target_machine: as :func:`optimize` returned it.
        strength_reduction: whether LLVM chooses what loops count and how addresses follow from it.
            It takes longer than all else where a function has many loops, and is of no use where
            loops add nothing but their counter to addresses.
    """
    _set_strength_reduction(strength_reduction)
    return bytes(target_machine.emit_object(module))


def emit_assembly(module: Any, target_machine: Any, strength_reduction: bool = True) -> str:
    """The assembly of an optimized module; the arguments are those of :func:`emit_object`."""
    _set_strength_reduction(strength_reduction)
    return str(target_machine.emit_assembly(module))


def _set_strength_reduction(wanted: bool) -> None:
    """LLVM has this as an option of the process alone, so it is set each time."""
    from llvmlite import binding

    binding.set_option("polyblocks", f"-disable-lsr={'false' if wanted else 'true'}")


def _set_load_elimination(wanted: bool) -> None:
    """Whether loops carry what they load; an option of the process, so it is set each time."""
    from llvmlite import binding

    binding.set_option("polyblocks", f"-enable-load-pre={'true' if wanted else 'false'}")


def _set_vector_combining(wanted: bool) -> None:
    """LLVM has this as an option of the process alone, so it is set each time."""
    from llvmlite import binding

    binding.set_option("polyblocks", f"-disable-vector-combine={'false' if wanted else 'true'}")


def _target_machine(machine: Machine) -> Any:
    from llvmlite import binding

    if machine.triple:
        binding.initialize_all_targets()
        binding.initialize_all_asmprinters()
        target = binding.Target.from_triple(machine.triple)
    else:
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        target = binding.Target.from_default_triple()
    for option in machine.options:
        binding.set_option("polyblocks", option)
    return target.create_target_machine(
        cpu=machine.cpu,
        features=machine.features,
        opt=machine.opt_level,
        reloc="pic",
        codemodel=machine.codemodel,
    )


def _reason(error: Exception) -> str:
    """LLVM's message on one line: what it is, and where."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return "; ".join(lines[:2]) or type(error).__name__
