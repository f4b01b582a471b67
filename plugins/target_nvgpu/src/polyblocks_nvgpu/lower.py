"""``lower_program``: stages S4 (to the NVVM dialect) and S5 (to PTX and machine code)."""

from __future__ import annotations

from typing import Any

from polyblocks import events
from polyblocks.artifact import Artifact
from polyblocks.codegen.gpu.machine_code import STAGE, stage
from polyblocks.codegen.gpu.manifest import (
    LOWERED,
    Resources,
    blob_name,
    lowered_text,
    manifest_of,
)
from polyblocks.codegen.gpu.plan import kernels
from polyblocks.codegen.gpu.stage import Dialect, kernel_stage
from polyblocks.options import CompileOptions
from polyblocks.pipeline import PassContext, run_stage
from polyblocks.target import TargetDescription
from polyblocks_nvgpu import ptxas
from polyblocks_nvgpu.emit import compile_ptx
from polyblocks_nvgpu.passes.finish_kernels import FinishKernelsPass

DIALECT = Dialect(
    conversion="convert-gpu-to-nvvm{use-bare-ptr-memref-call-conv=1}",
    names=("nvvm",),
    device_scope="device",
    block_scope="block",
    after=(FinishKernelsPass(),),
)


def stage_s4(target: TargetDescription) -> list[Any]:
    """The passes of S4 in order: from ``gpu.func`` kernels to ``llvm.func`` ones with nvvm ops.

    Args:
        target: a description made by this target.
    """
    del target
    return kernel_stage(DIALECT)


def lower_program(module: Any, target: TargetDescription, options: CompileOptions) -> Artifact:
    """Lower a module after S3 to an Artifact.

    Args:
        module: consumed; ends in form L (:mod:`polyblocks.codegen.gpu.stage`).
        target: a description made by this target.
        options: the checked options. With ``simulate`` the artifact holds form L alone.

    Returns:
        Its blobs are ``kernels.ARCH.ptx``, and ``kernels.ARCH.cubin`` if the assembler is found;
        or ``kernels.ARCH.mlir`` for the simulator.

    Raises:
        PassError: a pass failed.
        UnsupportedError: an op has no lowering, or LLVM or the assembler reject the code.
    """
    context = PassContext.create(target, options)
    run_stage("S4", stage_s4(target), module, context)
    blobs: dict[str, bytes] = {}
    resources: dict[str, Resources] = {}
    if options.simulate:
        blobs[blob_name(target.arch, LOWERED)] = lowered_text(module)
    elif kernels(module):
        with stage():
            ptx = compile_ptx(module, context)
            blobs[blob_name(target.arch, "ptx")] = ptx.encode()
            assembler = ptxas.find()
            if assembler is not None:
                with events.timed_pass(STAGE, "assemble"):
                    code, resources = ptxas.assemble(assembler, ptx, target.properties["cpu"])
                blobs[blob_name(target.arch, "cubin")] = code
    return Artifact(manifest_of(module, resources), blobs)


def lower_to_assembly(module: Any, target: TargetDescription, options: CompileOptions) -> str:
    """As :func:`lower_program`, but the PTX that a person reads."""
    context = PassContext.create(target, options)
    run_stage("S4", stage_s4(target), module, context)
    return compile_ptx(module, context)
