"""GPU kernels for tests of the simulator, lowered by upstream passes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polyblocks import mlir
from polyblocks.simt import Chip, LaunchResult, Semantics, Simulator
from polyblocks_amdgpu.simt import SEMANTICS as ROCDL
from polyblocks_nvgpu.simt import SEMANTICS as NVVM

TARGETS = ("nvvm", "rocdl")
SEMANTICS: dict[str, Semantics] = {"nvvm": NVVM, "rocdl": ROCDL}
_CONVERT = {
    "nvvm": "convert-gpu-to-nvvm{use-bare-ptr-memref-call-conv=1}",
    "rocdl": "convert-gpu-to-rocdl{chipset=gfx1100 use-bare-ptr-memref-call-conv=1}",
}


def lower(source: str, target: str) -> Any:
    """A module with a ``gpu.module`` in the gpu dialect, lowered to the target's dialect."""
    module = mlir.parse(source)
    mlir.run_textual(
        module,
        "gpu.module(convert-vector-to-scf,lower-affine,convert-scf-to-cf,"
        "expand-strided-metadata,lower-affine,convert-math-to-llvm),"
        "convert-vector-to-llvm,"
        f"gpu.module({_CONVERT[target]},reconcile-unrealized-casts,canonicalize,cse)",
    )
    return module


@dataclass
class Run:
    """What a launch did and the arrays afterwards."""

    result: LaunchResult
    arrays: list[np.ndarray]

    @property
    def kinds(self) -> list[str]:
        return [finding.kind for finding in self.result.findings]


def launch(
    module: Any,
    target: str,
    kernel: str,
    grid: tuple[int, ...],
    block: tuple[int, ...],
    *arguments: Any,
    fresh: tuple[int, ...] = (),
    chip: Chip | None = None,
    shared_bytes: int = 0,
    max_steps: int = 10_000_000,
) -> Run:
    """Launch on copies of arrays (and numbers); the arguments named in ``fresh`` are unwritten."""
    simulator = Simulator(module, SEMANTICS[target], chip, max_steps=max_steps)
    buffers = [
        simulator.buffer(a, written=i not in fresh, name=f"argument {i}")
        if isinstance(a, np.ndarray)
        else a
        for i, a in enumerate(arguments)
    ]
    result = simulator.launch(kernel, grid, block, buffers, shared_bytes)
    arrays = []
    for a, buffer in zip(arguments, buffers, strict=True):
        if isinstance(a, np.ndarray):
            copy = a.copy()
            buffer.get(copy)
            arrays.append(copy)
    return Run(result, arrays)


def kernel_of(body: str, arguments: str, target: str = "nvvm", globals_: str = "") -> Any:
    """A kernel ``@k`` in the LLVM dialect; ``%t`` is the thread's index as i64, ``%t32`` as i32."""
    index = {
        "nvvm": "nvvm.read.ptx.sreg.tid.x : i32",
        "rocdl": "rocdl.workitem.id.x : i32",
    }[target]
    return mlir.parse(
        f"""
        gpu.module @kernels {{
          {globals_}
          llvm.func @k({arguments}) attributes {{gpu.kernel, {target}.kernel}} {{
            %t32 = {index}
            %t = llvm.zext %t32 : i32 to i64
            {body}
            llvm.return
          }}
        }}
        """
    )


def apply(
    op: str,
    ins: list[tuple[str, np.ndarray]],
    out: tuple[str, Any],
    first: str = "%r",
    extra: tuple[int, ...] = (),
) -> np.ndarray:
    """The results of one op, ``op`` written with operands ``%x0``, ``%x1`` …, per thread.

    Args:
        op: text of the op, right of ``%r =``; or of several, the last of which defines ``%r``.
        first: what the first op defines.
        ins: MLIR type and one value per thread (last axis of two for a vector of that length).
        out: MLIR type and dtype of the result.
        extra: shape of one thread's result in that dtype.
    """
    n = len(ins[0][1])
    lines = []
    for i, (type_, _) in enumerate(ins):
        lines.append(
            f"%p{i} = llvm.getelementptr %a{i}[%t] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, {type_}\n"
            f"%x{i} = llvm.load %p{i} : !llvm.ptr<1> -> {type_}"
        )
    lines.append(f"{first} = {op}")
    lines.append(
        f"%q = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, {out[0]}\n"
        f"llvm.store %r, %q : {out[0]}, !llvm.ptr<1>"
    )
    names = [*(f"%a{i}: !llvm.ptr<1>" for i in range(len(ins))), "%out: !llvm.ptr<1>"]
    module = kernel_of("\n".join(lines), ", ".join(names))
    result = np.zeros((n, *extra), out[1])
    run = launch(module, "nvvm", "k", (1,), (n,), *(a for _, a in ins), result)
    assert run.result.findings == ()
    return run.arrays[-1]
