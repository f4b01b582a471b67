"""Modules in form K (``gpu.func`` kernels and their launches), written by hand."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from polyblocks import mlir
from polyblocks.artifact import Artifact
from polyblocks.options import CompileOptions
from polyblocks.target import TargetDescription


def nvgpu(arch: str) -> TargetDescription:
    """The description of an NVIDIA architecture."""
    from polyblocks_nvgpu.describe import describe

    return describe(CompileOptions(target="nvgpu", arch=arch))


def amdgpu(arch: str) -> TargetDescription:
    """The description of an AMD architecture."""
    from polyblocks_amdgpu.describe import describe

    return describe(CompileOptions(target="amdgpu", arch=arch))


def _lowering(target: TargetDescription) -> ModuleType:
    return importlib.import_module(f"polyblocks_{target.name}.lower")


def stage_s4(target: TargetDescription) -> list[Any]:
    """The passes of S4 of a target."""
    passes: list[Any] = _lowering(target).stage_s4(target)
    return passes


def lower(text: str, target: TargetDescription, **options: Any) -> Artifact:
    """The artifact of a module in form K, given as text."""
    wanted = CompileOptions(target=target.name, arch=target.arch, **options)
    artifact: Artifact = _lowering(target).lower_program(mlir.parse(text), target, wanted)
    return artifact


def assembly(text: str, target: TargetDescription) -> str:
    """The assembly of a module in form K."""
    options = CompileOptions(target=target.name, arch=target.arch)
    return str(_lowering(target).lower_to_assembly(mlir.parse(text), target, options))


@dataclass(frozen=True)
class Kernel:
    """One kernel and its launch.

    Attributes:
        name: of the kernel.
        body: the kernel's ops, without the terminator.
        arguments: name -> memref type; of the kernel, and of the program.
        workgroup: ``%s : memref<...>`` of the shared buffers.
        grid: blocks.
        block: threads of a block.
        attributes: further ones.
    """

    name: str
    body: str
    arguments: dict[str, str]
    workgroup: str = ""
    grid: int = 4
    block: int = 128
    attributes: str = ""


def module(kernels: Sequence[Kernel], before: str = "") -> str:
    """A program that launches kernels one after the other.

    Args:
        kernels: with names of their own.
        before: what stands in the ``gpu.module`` before the kernels.
    """
    functions, launches, formals = [], [], []
    for k in kernels:
        formal = ", ".join(f"%{n}: {t}" for n, t in k.arguments.items())
        shared = f"workgroup({k.workgroup})" if k.workgroup else ""
        more = f", {k.attributes}" if k.attributes else ""
        known = f"known_block_size = array<i32: {k.block}, 1, 1>{more}"
        functions.append(
            f"gpu.func @{k.name}({formal}) {shared} kernel attributes {{{known}}} {{\n"
            f"{k.body}\ngpu.return\n}}"
        )
        actual = ", ".join(f"%{k.name}_{n} : {t}" for n, t in k.arguments.items())
        launches.append(
            f"%{k.name}_blocks = arith.constant {k.grid} : index\n"
            f"%{k.name}_threads = arith.constant {k.block} : index\n"
            f"gpu.launch_func @kernels::@{k.name} blocks in (%{k.name}_blocks, %one, %one)"
            f" threads in (%{k.name}_threads, %one, %one) args({actual})"
        )
        formals += [f"%{k.name}_{n}: {t}" for n, t in k.arguments.items()]
    return "\n".join(
        [
            "module attributes {gpu.container_module} {",
            "gpu.module @kernels {",
            before,
            *functions,
            "}",
            f"func.func @main({', '.join(formals)}) {{",
            "%one = arith.constant 1 : index",
            *launches,
            "return",
            "}",
            "}",
        ]
    )


def program(body: str, arguments: dict[str, str], **others: Any) -> str:
    """A program of one launch of one kernel; see :class:`Kernel`."""
    before = others.pop("before", "")
    return module([Kernel(others.pop("name", "kernel"), body, arguments, **others)], before)


def elementwise(
    body: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    count: int = 1001,
    name: str = "elementwise",
) -> Kernel:
    """One thread per element; ``body`` makes ``%r0`` … of ``%a0`` … ; types are MLIR's."""
    block = 128
    arguments = {f"i{k}": f"memref<{count}x{t}>" for k, t in enumerate(inputs)}
    arguments |= {f"o{k}": f"memref<{count}x{t}>" for k, t in enumerate(outputs)}
    loads = "\n".join(
        f"%a{k} = memref.load %i{k}[%i] : memref<{count}x{t}>" for k, t in enumerate(inputs)
    )
    stores = "\n".join(
        f"memref.store %r{k}, %o{k}[%i] : memref<{count}x{t}>" for k, t in enumerate(outputs)
    )
    text = f"""
      %tid = gpu.thread_id x
      %bid = gpu.block_id x
      %threads = gpu.block_dim x
      %first = arith.muli %bid, %threads : index
      %i = arith.addi %first, %tid : index
      %count = arith.constant {count} : index
      %inside = arith.cmpi ult, %i, %count : index
      scf.if %inside {{
        {loads}
        {body}
        {stores}
      }}
    """
    return Kernel(name, text, arguments, grid=-(-count // block), block=block)


#: Sum of each row of a 64x1024 array: a block per row, four elements a thread, shuffles in a warp,
#: and shared memory for what the warps have.
ROW_SUM = Kernel(
    "row_sum",
    """
    %t = gpu.thread_id x
    %row = gpu.block_id x
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %c32 = arith.constant 32 : index
    %first = arith.muli %t, %c4 : index
    %v = vector.load %x[%row, %first] : memref<64x1024xf32>, vector<4xf32>
    %s0 = vector.reduction <add>, %v fastmath<reassoc> : vector<4xf32> into f32
    %width = arith.constant 32 : i32
    %d1 = arith.constant 1 : i32
    %d2 = arith.constant 2 : i32
    %d4 = arith.constant 4 : i32
    %d8 = arith.constant 8 : i32
    %d16 = arith.constant 16 : i32
    %p1, %ok1 = gpu.shuffle xor %s0, %d1, %width : f32
    %s1 = arith.addf %s0, %p1 : f32
    %p2, %ok2 = gpu.shuffle xor %s1, %d2, %width : f32
    %s2 = arith.addf %s1, %p2 : f32
    %p4, %ok4 = gpu.shuffle xor %s2, %d4, %width : f32
    %s4 = arith.addf %s2, %p4 : f32
    %p8, %ok8 = gpu.shuffle xor %s4, %d8, %width : f32
    %s8 = arith.addf %s4, %p8 : f32
    %p16, %ok16 = gpu.shuffle xor %s8, %d16, %width : f32
    %s16 = arith.addf %s8, %p16 : f32
    %lane = arith.remui %t, %c32 : index
    %warp = arith.divui %t, %c32 : index
    %leads = arith.cmpi eq, %lane, %c0 : index
    scf.if %leads {
      memref.store %s16, %parts[%warp] : memref<8xf32, #gpu.address_space<workgroup>>
    }
    gpu.barrier
    %is_first = arith.cmpi eq, %t, %c0 : index
    scf.if %is_first {
      %c1 = arith.constant 1 : index
      %zero = arith.constant 0.0 : f32
      %sum = scf.for %k = %c0 to %c8 step %c1 iter_args(%a = %zero) -> (f32) {
        %p = memref.load %parts[%k] : memref<8xf32, #gpu.address_space<workgroup>>
        %b = arith.addf %a, %p : f32
        scf.yield %b : f32
      }
      memref.store %sum, %y[%row] : memref<64xf32>
    }
    """,
    {"x": "memref<64x1024xf32>", "y": "memref<64xf32>"},
    workgroup="%parts : memref<8xf32, #gpu.address_space<workgroup>>",
    grid=64,
    block=256,
)
