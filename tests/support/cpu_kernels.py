"""Modules as they are after stage S3, written by hand, and how to compile and call them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from polyblocks import mlir
from polyblocks.artifact import Artifact
from polyblocks.options import CompileOptions
from polyblocks_cpu.describe import describe
from polyblocks_cpu.host import X86_LEVELS, host
from polyblocks_cpu.load import CpuExecutable, load_artifact
from polyblocks_cpu.lower import lower_program, lower_to_assembly

#: numpy's name -> MLIR's; uint16 holds the bits of bf16, which numpy does not know.
MLIR_TYPES = {
    "bool": "i1",
    "complex128": "complex<f64>",
    "complex64": "complex<f32>",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "int8": "i8",
    "uint16": "bf16",
    "uint8": "i8",
}


#: ``math.exp`` in vectors of 16 float32.
EXP_IN_VECTORS = """
func.func @main(%a: memref<64xf32>, %b: memref<64xf32>) {
  affine.for %i = 0 to 64 step 16 {
    %x = affine.vector_load %a[%i] : memref<64xf32>, vector<16xf32>
    %y = math.exp %x : vector<16xf32>
    affine.vector_store %y, %b[%i] : memref<64xf32>, vector<16xf32>
  }
  return
}
"""


def compile_text(text: str, arch: str | None = None, **options: Any) -> Artifact:
    """The artifact of a module after S3, given as text."""
    wanted = CompileOptions(arch=arch, **options)
    return lower_program(mlir.parse(text), describe(wanted), wanted)


def assembly_of(text: str, arch: str) -> str:
    """The assembly of a module after S3."""
    options = CompileOptions(arch=arch)
    return lower_to_assembly(mlir.parse(text), describe(options), options)


def pack(arrays: Sequence[np.ndarray]) -> bytes:
    """Pointers as the entry takes them."""
    return struct.pack(f"{len(arrays)}Q", *[a.ctypes.data for a in arrays])


def load(artifact: Artifact) -> CpuExecutable:
    """Link an artifact, as it would come from the cache."""
    return load_artifact(Artifact({**artifact.manifest, "arch": "test"}, artifact.blobs))


def run(
    text: str, *arrays: np.ndarray, arch: str | None = None, threads: int = 2, **options: Any
) -> int:
    """Compile and call once; the arrays are the arguments in order. Returns the status."""
    executable = load(compile_text(text, arch, **options))
    try:
        return executable.entry(pack(arrays), threads)
    finally:
        executable.close()


def elementwise(body: str, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> str:
    """A parallel loop over vectors; ``body`` makes ``%r0`` … of ``%a0`` … ."""
    n = len(inputs[0])

    def type_of(array: np.ndarray) -> str:
        return f"memref<{len(array)}x{MLIR_TYPES[array.dtype.name]}>"

    named = [(f"%i{k}", x) for k, x in enumerate(inputs)]
    named += [(f"%o{k}", x) for k, x in enumerate(outputs)]
    arguments = ", ".join(f"{name}: {type_of(x)}" for name, x in named)
    loads = "\n".join(f"%a{k} = affine.load %i{k}[%i] : {type_of(x)}" for k, x in enumerate(inputs))
    stores = "\n".join(
        f"affine.store %r{k}, %o{k}[%i] : {type_of(x)}" for k, x in enumerate(outputs)
    )
    return f"""
    module {{
      func.func @main({arguments}) {{
        affine.parallel (%i) = (0) to ({n}) {{
          {loads}
          {body}
          {stores}
        }} {{polyblocks.level = "team", polyblocks.kernel = "elementwise"}}
        return
      }}
    }}
    """


def runnable_levels() -> list[str]:
    """The psABI levels that this machine can execute, oldest first; none on another family."""
    features = host().features
    if not features or host().arch.family != "x86_64":
        return []
    have = {f[1:] for f in features if f[0] == "+"}
    spelled = {"pni": "sse3", "lahf_lm": "sahf", "abm": "lzcnt", "bmi1": "bmi"}

    def name(flag: str) -> str:
        return spelled.get(flag, flag.replace("sse4_", "sse4."))

    return [level for level, flags in reversed(X86_LEVELS) if {name(f) for f in flags} <= have]
