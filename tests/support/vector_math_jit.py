"""Compiles element-wise loops over vector-math expansions and runs them on numpy arrays."""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyblocks import mlir
from polyblocks.codegen import llvm
from polyblocks.codegen.builder import Scale, Table
from polyblocks.codegen.vector_math import expand_math

#: A call of another function, in the assembly of either family of chips.
CALL = re.compile(r"^\s+(call|callq|bl|blr)\s", re.MULTILINE)
#: Elements per call of a compiled loop.
CHUNK = 1 << 15

_DTYPES = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(np.uint16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
}

_PIPELINE = (
    "lower-affine,convert-scf-to-cf,convert-vector-to-llvm,finalize-memref-to-llvm,"
    "convert-func-to-llvm{use-bare-ptr-memref-call-conv=1},convert-math-to-llvm,"
    "convert-arith-to-llvm,convert-cf-to-llvm,reconcile-unrealized-casts"
)


@dataclass(frozen=True)
class Loop:
    """One function over arrays: ``out[i] = op(in0[i], in1[i], ...)``.

    Attributes:
        op: MLIR operation, e.g. ``math.exp``.
        inputs: element types of the operands.
        outputs: element types of the results.
        lanes: 0 for scalar code in an affine loop, else the vector size of the MLIR operation.
        constant: a last operand of the same type as the first that is not an array.
    """

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    lanes: int = 0
    constant: str = ""

    def text(self, name: str) -> str:
        """The function in MLIR."""
        kinds = (*self.inputs, *self.outputs)
        arguments = ", ".join(f"%m{i}: memref<{CHUNK}x{kind}>" for i, kind in enumerate(kinds))
        element = [f"vector<{self.lanes}x{kind}>" if self.lanes else kind for kind in kinds]
        count = len(self.inputs)
        body = []
        for i, kind in enumerate(self.inputs):
            verb = "affine.vector_load" if self.lanes else "affine.load"
            suffix = f", {element[i]}" if self.lanes else ""
            body.append(f"%x{i} = {verb} %m{i}[%i] : memref<{CHUNK}x{kind}>{suffix}")
        operands = ", ".join(f"%x{i}" for i in range(count))
        types_in, types_out = ", ".join(element[:count]), ", ".join(element[count:])
        if self.constant:
            body.append(f"%c = arith.constant {self.constant} : {self.inputs[0]}")
            operands += ", %c"
            types_in += f", {self.inputs[0]}"
        body.append(
            f'%r:{len(self.outputs)} = "{self.op}"({operands}) : ({types_in}) -> ({types_out})'
        )
        for i, kind in enumerate(self.outputs):
            verb = "affine.vector_store" if self.lanes else "affine.store"
            suffix = f", {element[count + i]}" if self.lanes else ""
            body.append(f"{verb} %r#{i}, %m{count + i}[%i] : memref<{CHUNK}x{kind}>{suffix}")
        step = f" step {self.lanes}" if self.lanes else ""
        inner = "\n      ".join(body)
        return (
            f"  func.func @{name}({arguments}) {{\n    affine.for %i = 0 to {CHUNK}{step} {{\n"
            f"      {inner}\n    }}\n    return\n  }}\n"
        )


class Compiled:
    """Loops compiled for the host (runnable) or another machine (assembly only)."""

    def __init__(
        self,
        loops: Mapping[str, Loop],
        *,
        fma: bool = True,
        ldexp: bool = False,
        scale: Scale | None = None,
        table: Table | None = None,
        machine: llvm.Machine | None = None,
    ) -> None:
        self.loops = dict(loops)
        text = "module {\n" + "".join(loop.text(name) for name, loop in loops.items()) + "}\n"
        self._code = Code(
            text, list(loops), fma=fma, ldexp=ldexp, scale=scale, table=table, machine=machine
        )
        self.expanded = self._code.expanded
        self.assembly = self._code.assembly

    def assembly_of(self, name: str) -> str:
        """The instructions of one function."""
        return self.assembly.split(f"\n{name}:", 1)[1].split(f".size\t{name}", 1)[0]

    def __call__(self, name: str, *arrays: np.ndarray) -> list[np.ndarray]:
        """Run one loop over 1-d arrays of any equal length."""
        loop = self.loops[name]
        function = self._code.function(name)
        length = len(arrays[0])
        padded = -(-length // CHUNK) * CHUNK
        inputs = []
        for array, kind in zip(arrays, loop.inputs, strict=True):
            full = np.ones(padded, _DTYPES[kind])
            full[:length] = array
            inputs.append(full)
        outputs = [np.empty(padded, _DTYPES[kind]) for kind in loop.outputs]
        for start in range(0, padded, CHUNK):
            function(*(a[start:] for a in (*inputs, *outputs)))
        return [output[:length] for output in outputs]


class Code:
    """A module of functions on bare pointers, expanded and compiled."""

    def __init__(
        self,
        text: str,
        names: Sequence[str],
        *,
        fma: bool,
        ldexp: bool = False,
        scale: Scale | None = None,
        table: Table | None = None,
        expand: Callable[..., object] = expand_math,
        machine: llvm.Machine | None,
    ) -> None:
        self.names = names
        module = mlir.parse(text)
        expand(module, fma=fma, ldexp=ldexp, scale=scale, table=table)
        module.operation.verify()
        self.expanded = str(module)
        if "bf16" in text:
            # Few machines convert them in an instruction; LLVM would call a function.
            mlir.run_textual(module, "arith-expand{include-bf16=true}")
        mlir.run_textual(module, _PIPELINE)
        machine = machine or host_machine()
        prepared = llvm.prepare(mlir.translate_to_llvmir(module), machine, names, [])
        optimized, target_machine = llvm.optimize(prepared, machine)
        self.assembly = llvm.emit_assembly(optimized, target_machine)
        self._object = llvm.emit_object(optimized, target_machine)

    @functools.cached_property
    def _library(self) -> tuple[Any, Any]:
        from llvmlite import binding

        # The older linker wants code and constants within 2 GiB, wherever they come to lie.
        jit = binding.create_lljit_compiler(use_jit_link=True)
        builder = binding.JITLibraryBuilder()
        builder.add_object_img(self._object).add_current_process()
        for name in self.names:
            builder.export_symbol(name)
        return jit, builder.link(jit, "vector_math")

    def function(self, name: str) -> Callable[..., None]:
        """One function, callable with contiguous numpy arrays."""

        def call(*arrays: np.ndarray) -> None:
            # Through self: the machine code lives as long as the library object.
            address = self._library[1][name]
            pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
            ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(arrays))(address)(*pointers)

        return call


def compile_text(text: str, name: str) -> Callable[..., None]:
    """One function of an MLIR module, callable with contiguous numpy arrays."""
    return Code(text, [name], fma=True, machine=None).function(name)


def host_machine() -> llvm.Machine:
    """The machine that the tests run on."""
    from llvmlite import binding

    return llvm.Machine("", binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten())


def host_has_ldexp() -> bool:
    """Whether the machine that the tests run on scales by powers of two in one instruction."""
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    return all(features.get(name, False) for name in ("avx512f", "avx512vl"))


def host_scale() -> Scale | None:
    """That instruction as the CPU target uses it; None if the machine has none."""
    from polyblocks_cpu.instructions.scalef import multiply_by_power

    return multiply_by_power if host_has_ldexp() else None


def host_table() -> Table | None:
    """How the CPU target looks numbers up on this machine; None if it does not."""
    from polyblocks_cpu.instructions.permute import pick_from

    return pick_from if host_has_ldexp() else None


def ulp_error(result: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Distance in units in the last place of the exact value; infinite for wrong specials.

    Args:
        result: float32 or float64.
        exact: the reference in a wider type (float64 or longdouble), rounded nowhere near.

    Returns:
        Float64 errors. NaN must meet NaN, infinities and zeros must have the reference's sign.
    """
    with np.errstate(all="ignore"):
        info = np.finfo(result.dtype)
        rounded = exact.astype(result.dtype)
        scale = np.maximum(np.abs(exact), np.asarray(info.tiny, exact.dtype))
        _, exponent = np.frexp(scale)
        # Above the largest finite number the unit stays that of the last binade.
        exponent = np.minimum(exponent, info.maxexp)
        unit = np.ldexp(np.ones_like(exact), exponent - info.nmant - 1)
        # An infinite result for a finite reference counts as the next number of the format.
        top = np.ldexp(np.asarray(1.0, exact.dtype), info.maxexp)
        wide = result.astype(exact.dtype)
        wide = np.where(np.isinf(wide), np.copysign(top, wide), wide)
        target = np.where(np.isinf(exact), np.copysign(top, exact), exact)
        target = np.clip(target, -top, top)
        error = (np.abs(wide - target) / unit).astype(np.float64)
    error = np.where(np.isnan(result) & np.isnan(exact), 0.0, error)
    error = np.where(np.isnan(result) != np.isnan(exact), np.inf, error)
    wrong_infinity = np.isinf(exact) & (result != rounded)
    zero_sign = (exact == 0) & (np.signbit(result) != np.signbit(exact)) & (result == 0)
    return np.where(wrong_infinity | zero_sign, np.inf, error)


def spread(kind: str, count: int, seed: int = 0) -> np.ndarray:
    """``count`` numbers of a float type, spread evenly over signs and exponents, plus specials."""
    generator = np.random.default_rng(seed)
    unsigned, float_type = (np.uint32, np.float32) if kind == "f32" else (np.uint64, np.float64)
    info = np.iinfo(unsigned)
    values = generator.integers(0, info.max, count, dtype=unsigned, endpoint=True)
    return np.concatenate([specials(kind), values.view(float_type)])


def specials(kind: str) -> np.ndarray:
    """Zeros, infinities, NaN, denormals, halves, integers, limits, with both signs."""
    float_type = np.float32 if kind == "f32" else np.float64
    info = np.finfo(float_type)
    base: Sequence[float] = [
        0.0, info.smallest_subnormal, info.tiny, float(info.tiny) * 0.75, info.eps, 0.5, 1.0,
        1.5, 2.0, 3.0, 4.0, 5.0, 10.0, 100.0, 1e4, 2.0**23, 2.0**24 - 1, 2.0**31, 1e20, 1e30,
        info.max, np.inf, np.nan,
    ]  # fmt: skip
    values = np.asarray(base, float_type)
    with np.errstate(all="ignore"):
        neighbours = [np.nextafter(values, float_type(s)) for s in (-np.inf, np.inf)]
    values = np.concatenate([values, *neighbours])
    return np.concatenate([values, -values])
