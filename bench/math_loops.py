"""Loops over one function of a float32, compiled as the CPU target compiles its kernels."""

from __future__ import annotations

import ctypes
import re
from typing import Any

import numpy as np

from polyblocks import mlir
from polyblocks.codegen import llvm
from polyblocks.codegen.merge_rare_branches import MergeRareBranchesPass
from polyblocks.codegen.schedule_vectors import ScheduleVectorsPass
from polyblocks.codegen.vector_math import expand_math
from polyblocks.options import CompileOptions
from polyblocks.pipeline import PassContext
from polyblocks_cpu.describe import describe
from polyblocks_cpu.emit import machine
from polyblocks_cpu.lower import math_instructions

#: Elements of the arrays; four of them (in and out, of two threads) fit a first-level cache.
LENGTH = 4096

_PIPELINE = (
    "lower-affine,convert-scf-to-cf,convert-vector-to-llvm,finalize-memref-to-llvm,"
    "convert-func-to-llvm{use-bare-ptr-memref-call-conv=1},convert-math-to-llvm,"
    "convert-arith-to-llvm,convert-cf-to-llvm,reconcile-unrealized-casts"
)
_ARGUMENTS = (
    f"(%pin: memref<{LENGTH}xf32>, %pout: memref<{LENGTH}xf32>, %length: index, %times: index)"
)
#: A chain of dependent multiply-adds, one per ``times``.
CLOCK = f"""
  func.func @clock{_ARGUMENTS} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %x = memref.load %pin[%c0] : memref<{LENGTH}xf32>
    %r = scf.for %j = %c0 to %times step %c1 iter_args(%a = %x) -> (f32) {{
      %b = math.fma %a, %x, %x : f32
      scf.yield %b : f32
    }}
    memref.store %r, %pout[%c0] : memref<{LENGTH}xf32>
    return
  }}
"""

_MEMORY = re.compile(r"\(%r(?!ip)|\[x\d")
#: A vector register written to memory, in the assembly of either family of chips.
_STORE = re.compile(r"\s+(?:vmov\w+\s+%([xyz])mm\d+, .*\(%r(?!sp)|st[rp]\s+q|st1)")
_BYTES = {None: 16, "x": 16, "y": 32, "z": 64}


def loop(name: str, body: str, lanes: int) -> str:
    """MLIR of ``name(in, out, length, times)``: ``times`` sweeps of ``out[i] = f(in[i])``.

    Args:
        name: of the function.
        body: lines from ``%x`` to ``%r``; ``T`` is the type, ``C(1.0)`` a constant of it.
        lanes: of the vectors; 0 writes scalar operations.
    """
    element = f"vector<{lanes}xf32>" if lanes else "f32"
    value = "dense<{}>" if lanes else "{}"
    body = re.sub(r"\bT\b", element, body)
    body = re.sub(r"C\((.*?)\)", lambda m: f"arith.constant {value.format(m[1])} : {element}", body)
    dialect, suffix = ("vector", f", {element}") if lanes else ("memref", "")
    return f"""
  func.func @{name}{_ARGUMENTS} {{
    %in = memref.cast %pin : memref<{LENGTH}xf32> to memref<?xf32>
    %out = memref.cast %pout : memref<{LENGTH}xf32> to memref<?xf32>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %step = arith.constant {max(lanes, 1)} : index
    scf.for %j = %c0 to %times step %c1 {{
      scf.for %i = %c0 to %length step %step {{
        %x = {dialect}.load %in[%i] : memref<?xf32>{suffix}
        {body}
        {dialect}.store %r, %out[%i] : memref<?xf32>{suffix}
      }}
    }}
    return
  }}
"""


def lanes() -> int:
    """Elements of a float32 vector of this machine."""
    return describe(CompileOptions()).vector_bits // 32


class Program:
    """Compiled functions.

    Attributes:
        assembly: of all of them.
    """

    def __init__(self, functions: dict[str, str]) -> None:
        from llvmlite import binding

        target = describe(CompileOptions())
        spec = machine(target)
        module = mlir.parse(f"module {{{''.join(functions.values())}}}")
        expand_math(module, **math_instructions(target))
        for rewrite in (MergeRareBranchesPass(), ScheduleVectorsPass()):
            rewrite.run(module, PassContext.create(target, CompileOptions()))
        mlir.run_textual(module, _PIPELINE)
        prepared = llvm.prepare(mlir.translate_to_llvmir(module), spec, list(functions), [])
        optimized, target_machine = llvm.optimize(prepared, spec)
        self.assembly = llvm.emit_assembly(optimized, target_machine)
        builder = binding.JITLibraryBuilder()
        builder.add_object_img(llvm.emit_object(optimized, target_machine)).add_current_process()
        for name in functions:
            builder.export_symbol(name)
        self._linker = binding.create_lljit_compiler(use_jit_link=True)
        self._library: Any = builder.link(self._linker, "math_loops")

    def run(self, name: str, x: np.ndarray, y: np.ndarray, length: int, times: int) -> None:
        """Call a function with float32 arrays of `LENGTH`."""
        kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2)
        kind(self._library[name])(x.ctypes.data, y.ctypes.data, length, times)

    def instructions(self, name: str) -> int:
        """Instructions per vector of results in a function's tightest loop that reads, too."""
        lines = self.assembly.split(f"\n{name}:", 1)[1].split(f".size\t{name}", 1)[0].splitlines()
        labels = {m[1]: i for i, line in enumerate(lines) if (m := re.match(r"(\.\w+):", line))}
        counts = []
        for end, line in enumerate(lines):
            jump = re.match(r"\s+(?:j|b|cb)\S*\s+.*?(\.L\w+)", line)
            if jump is None or (start := labels.get(jump[1], end)) >= end:
                continue
            body = [row for row in lines[start : end + 1] if re.match(r"\s+[a-z]", row)]
            stores = [_BYTES[m[1]] for row in body if (m := _STORE.match(row))]
            if stores and sum(bool(_MEMORY.search(row)) for row in body) > len(stores):
                counts.append(round(len(body) * 4 * lanes() / sum(stores)))
        return min(counts, default=0)
