"""The kernels of :mod:`bench.ceilings`: LLVM IR for the CPU target's own code generator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from polyblocks.codegen import llvm
from polyblocks.options import CompileOptions
from polyblocks.target import TargetDescription
from polyblocks_cpu.describe import describe
from polyblocks_cpu.emit import machine

#: Bytes of one thread's working set in main memory: more than any last-level cache's share.
MAIN_BYTES = 128 << 20

#: Types of operands whose peak rate is measured, in the order of the tables.
PEAKS = ("float32", "bfloat16", "int8")

#: Instructions that sum products of small operands: type and feature -> intrinsic, accumulator,
#: operand, operations of one call.
_DOTS = {
    ("bfloat16", "avx512bf16"): (
        "llvm.x86.avx512bf16.dpbf16ps.512",
        "<16 x float>",
        "<32 x bfloat>",
        64,
    ),
    ("bfloat16", "bf16"): (
        "llvm.aarch64.neon.bfdot.v4f32.v8bf16",
        "<4 x float>",
        "<8 x bfloat>",
        16,
    ),
    ("int8", "avx512vnni"): ("llvm.x86.avx512.vpdpbusd.512", "<16 x i32>", "<64 x i8>", 128),
    ("int8", "avxvnni"): ("llvm.x86.avx512.vpdpbusd.256", "<8 x i32>", "<32 x i8>", 64),
    ("int8", "dotprod"): ("llvm.aarch64.neon.udot.v4i32.v16i8", "<4 x i32>", "<16 x i8>", 32),
}


@dataclass(frozen=True)
class Kernel:
    """One function ``(buffer, bytes, steps)``.

    Attributes:
        text: LLVM IR of the function, and of what it declares.
        work: operations of one step; 0 for the memory kernels, whose steps are passes.
    """

    text: str
    work: float = 0.0


def kernels() -> dict[str, Kernel]:
    """The kernels that this machine has instructions for, by name."""
    target = describe(CompileOptions())
    lanes = target.vector_bits // 32
    chains = 12 if target.vector_registers == 16 else 24
    vector = f"<{lanes} x float>"
    found = {
        "float32": _chain(
            "float32", "llvm.fma", vector, vector, chains, 2.0 * lanes, operands_first=True
        ),
        "read": Kernel(_read(vector, lanes * 4)),
        "copy": Kernel(_copy("copy", vector, lanes * 4, "")),
        "stream": Kernel(_copy("stream", vector, lanes * 4, ", !nontemporal !0")),
    }
    for (dtype, feature), (name, accumulator, operand, work) in _DOTS.items():
        if f"+{feature}" in target.properties["features"] and dtype not in found:
            found[dtype] = _chain(dtype, name, accumulator, operand, chains, float(work))
    return found


def link(found: dict[str, Kernel]) -> Any:
    """The kernels as machine code in this process: a library that gives addresses by name."""
    from llvmlite import binding

    target = describe(CompileOptions())
    spec = machine(target)
    text = "\n".join([*(kernel.text for kernel in found.values()), "!0 = !{i32 1}"])
    code = llvm.emit_object(*llvm.optimize(llvm.prepare(text, spec, set(found), ()), spec))
    builder = binding.JITLibraryBuilder().add_object_img(code).add_current_process()
    for name in found:
        builder.export_symbol(name)
    return builder.link(binding.create_lljit_compiler(use_jit_link=True), "ceilings")


def working_sets() -> dict[str, int]:
    """Bytes for one thread that lie in each level of memory, and not in the one before it."""
    target = describe(CompileOptions())
    sets = {level.name: _share(level, target) // 2 for level in target.memory if level.size}
    return {name: max(4096, size // 8192 * 8192) for name, size in sets.items()} | {
        "main": MAIN_BYTES
    }


def _share(level: Any, target: TargetDescription) -> int:
    threads = target.parallel[0].size
    return int(level.size) // min(level.shared_by, threads)


def _chain(
    name: str,
    intrinsic: str,
    accumulator: str,
    operand: str,
    chains: int,
    work: float,
    operands_first: bool = False,
) -> Kernel:
    """Independent accumulators that each take one multiply-add per step."""
    if operands_first:
        suffix = "v" + accumulator.strip("<>").replace(" x float", "f32")
        intrinsic = f"{intrinsic}.{suffix}"
        declared = f"{accumulator} @{intrinsic}({operand}, {operand}, {accumulator})"
    else:
        declared = f"{accumulator} @{intrinsic}({accumulator}, {operand}, {operand})"
    begins, steps = [], []
    for i in range(chains):
        begins.append(f"  %a{i} = phi {accumulator} [ zeroinitializer, %entry ], [ %b{i}, %loop ]")
        values = [f"{accumulator} %a{i}"]
        operands = [f"{operand} %x", f"{operand} %y"]
        values = operands + values if operands_first else values + operands
        steps.append(f"  %b{i} = call {accumulator} @{intrinsic}({', '.join(values)})")
    width = _bytes(accumulator)
    ends = [
        line
        for i in range(chains)
        for line in (
            f"  %p{i} = getelementptr i8, ptr %buffer, i64 {i * width}",
            f"  store {accumulator} %b{i}, ptr %p{i}, align 4",
        )
    ]
    text = "\n".join(
        [
            f"declare {declared}",
            f"define void @{name}(ptr %buffer, i64 %bytes, i64 %steps) {{",
            "entry:",
            f"  %x = load {operand}, ptr %buffer, align 4",
            "  %q = getelementptr i8, ptr %buffer, i64 64",
            f"  %y = load {operand}, ptr %q, align 4",
            "  br label %loop",
            "loop:",
            "  %i = phi i64 [ 0, %entry ], [ %next, %loop ]",
            *begins,
            *steps,
            "  %next = add i64 %i, 1",
            "  %more = icmp slt i64 %next, %steps",
            "  br i1 %more, label %loop, label %done",
            "done:",
            *ends,
            "  ret void",
            "}",
        ]
    )
    return Kernel(text, work * chains)


def _bytes(vector: str) -> int:
    lanes, _, element = vector.strip("<>").partition(" x ")
    return int(lanes) * {"float": 4, "i32": 4}[element]


def _read(vector: str, width: int, unroll: int = 8) -> str:
    """Sums the buffer, ``steps`` times over; its length is a multiple of ``8 * width``."""
    sums = [f"  %s{i} = phi {vector} [ %t{i}, %outer ], [ %u{i}, %loop ]" for i in range(unroll)]
    kept = [
        f"  %t{i} = phi {vector} [ zeroinitializer, %entry ], [ %u{i}, %pass ]"
        for i in range(unroll)
    ]
    body = []
    for i in range(unroll):
        body += [
            f"  %o{i} = add i64 %at, {i * width}",
            f"  %p{i} = getelementptr i8, ptr %buffer, i64 %o{i}",
            f"  %v{i} = load {vector}, ptr %p{i}, align 64",
            f"  %u{i} = fadd {vector} %s{i}, %v{i}",
        ]
    ends = [f"  store volatile {vector} %u{i}, ptr %buffer, align 64" for i in range(unroll)]
    return _passes("read", kept, sums, body, ends, "%bytes", unroll * width)


def _copy(name: str, vector: str, width: int, flag: str, unroll: int = 4) -> str:
    """Copies the first half of the buffer to the second, ``steps`` times over."""
    body = []
    for i in range(unroll):
        body += [
            f"  %o{i} = add i64 %at, {i * width}",
            f"  %p{i} = getelementptr i8, ptr %buffer, i64 %o{i}",
            f"  %q{i} = getelementptr i8, ptr %p{i}, i64 %half",
            f"  %v{i} = load {vector}, ptr %p{i}, align 64",
            f"  store {vector} %v{i}, ptr %q{i}, align 64{flag}",
        ]
    # Without this the optimizer sees that every pass writes the same.
    clobber = ['  call void asm sideeffect "", "~{memory}"()']
    return _passes(name, [], [], body, [], "%half", unroll * width, clobber)


def _passes(
    name: str,
    kept: list[str],
    sums: list[str],
    body: list[str],
    ends: list[str],
    length: str,
    step: int,
    between: list[str] | None = None,
) -> str:
    return "\n".join(
        [
            f"define void @{name}(ptr %buffer, i64 %bytes, i64 %steps) {{",
            "entry:",
            "  %half = lshr i64 %bytes, 1",
            "  br label %outer",
            "outer:",
            "  %k = phi i64 [ 0, %entry ], [ %kk, %pass ]",
            *kept,
            "  br label %loop",
            "loop:",
            "  %at = phi i64 [ 0, %outer ], [ %next, %loop ]",
            *sums,
            *body,
            f"  %next = add i64 %at, {step}",
            f"  %more = icmp ult i64 %next, {length}",
            "  br i1 %more, label %loop, label %pass",
            "pass:",
            *(between or []),
            "  %kk = add i64 %k, 1",
            "  %again = icmp slt i64 %kk, %steps",
            "  br i1 %again, label %outer, label %done",
            "done:",
            *ends,
            "  ret void",
            "}",
        ]
    )
