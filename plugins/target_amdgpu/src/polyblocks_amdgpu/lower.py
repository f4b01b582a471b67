"""``lower_program``: stages S4 (to the ROCDL dialect) and S5 (to a linked code object)."""

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
from polyblocks_amdgpu import linker
from polyblocks_amdgpu.code_object import resources as resources_of
from polyblocks_amdgpu.emit import assembly, compile_object
from polyblocks_amdgpu.passes.permit_atomics import PermitAtomicsPass


def stage_s4(target: TargetDescription) -> list[Any]:
    """The passes of S4 in order: from ``gpu.func`` kernels to ``llvm.func`` ones with rocdl ops.

    Args:
        target: a description made by this target.
    """
    chip = target.properties["cpu"]
    return kernel_stage(
        Dialect(
            conversion="convert-gpu-to-rocdl{use-bare-ptr-memref-call-conv=1 runtime=HIP "
            f"chipset={chip}}}",
            names=("rocdl",),
            device_scope="agent",
            block_scope="workgroup",
            after=(PermitAtomicsPass(),),
        )
    )


def lower_program(module: Any, target: TargetDescription, options: CompileOptions) -> Artifact:
    """Lower a module after S3 to an Artifact.

    Args:
        module: consumed; ends in form L (:mod:`polyblocks.codegen.gpu.stage`).
        target: a description made by this target.
        options: the checked options. With ``simulate`` the artifact holds form L alone.

    Returns:
        Its blob is ``kernels.ARCH.hsaco``, or ``kernels.ARCH.mlir`` for the simulator.

    Raises:
        PassError: a pass failed.
        TargetError: there is no linker.
        UnsupportedError: an op has no lowering, or LLVM or the linker reject the code.
    """
    context = PassContext.create(target, options)
    run_stage("S4", stage_s4(target), module, context)
    blobs: dict[str, bytes] = {}
    resources: dict[str, Resources] = {}
    if options.simulate:
        blobs[blob_name(target.arch, LOWERED)] = lowered_text(module)
    elif kernels(module):
        with stage():
            data = compile_object(module, context)
            with events.timed_pass(STAGE, "link"):
                code = linker.link(linker.find(), data)
            resources = resources_of(code)
        blobs[blob_name(target.arch, "hsaco")] = code
    return Artifact(manifest_of(module, resources), blobs)


def lower_to_assembly(module: Any, target: TargetDescription, options: CompileOptions) -> str:
    """As :func:`lower_program`, but the assembly that a person reads."""
    context = PassContext.create(target, options)
    run_stage("S4", stage_s4(target), module, context)
    return assembly(module, context)
