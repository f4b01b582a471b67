"""``lower_program``: stages S4 (to the ROCDL dialect) and S5 (to a linked code object)."""

from __future__ import annotations

from typing import Any

from polyblocks import events
from polyblocks.artifact import Artifact
from polyblocks.codegen.gpu.lower import lower_kernels
from polyblocks.codegen.gpu.machine_code import STAGE
from polyblocks.codegen.gpu.manifest import Resources
from polyblocks.codegen.gpu.resident_blocks import note_blocks
from polyblocks.codegen.gpu.stage import Dialect, kernel_stage
from polyblocks.options import CompileOptions
from polyblocks.pipeline import PassContext, run_stage
from polyblocks.target import TargetDescription
from polyblocks_amdgpu import code_object, linker, register_pressure
from polyblocks_amdgpu.emit import assembly, compile_object, optimized_ir
from polyblocks_amdgpu.passes.permit_atomics import PermitAtomicsPass


def stage_s4(target: TargetDescription) -> list[Any]:
    """The passes of S4 in order: from ``gpu.func`` kernels to ``llvm.func`` ones with rocdl ops.

    Args:
        target: a description made by this target.
    """
    chip = target.properties["cpu"]
    options = f"use-bare-ptr-memref-call-conv=1 runtime=HIP chipset={chip}"
    dialect = Dialect(
        conversion=f"convert-gpu-to-rocdl{{{options}}}",
        names=("rocdl",),
        device_scope="agent",
        block_scope="workgroup",
        after=(PermitAtomicsPass(),),
    )
    return kernel_stage(dialect)


def lower_program(module: Any, target: TargetDescription, options: CompileOptions) -> Artifact:
    """See :func:`polyblocks.codegen.gpu.lower.lower_kernels`; the blob is ``kernels.ARCH.hsaco``.

    Raises:
        TargetError: there is no linker.
    """
    return lower_kernels(module, target, options, stage_s4(target), _build, optimized_ir)


def _build(module: Any, context: PassContext) -> tuple[dict[str, bytes], dict[str, Resources]]:
    chip = context.target.multiprocessor
    assert chip is not None
    asked = register_pressure.ask(module, chip)
    code, resources = _linked(module, context)
    # Registers in memory cost more than blocks that are not there.
    if spilled := [n for n in asked if resources[n].spill_bytes or resources[n].stack_bytes]:
        register_pressure.take_back(module, spilled)
        code, resources = _linked(module, context)
    note_blocks(module, chip, resources, register_pressure.short(module, chip, resources))
    return {"hsaco": code}, resources


def _linked(module: Any, context: PassContext) -> tuple[bytes, dict[str, Resources]]:
    data = compile_object(module, context)
    with events.timed_pass(STAGE, "link"):
        code = linker.link(linker.find(), data)
    return code, code_object.resources(code)


def lower_to_assembly(module: Any, target: TargetDescription, options: CompileOptions) -> str:
    """As :func:`lower_program`, but the assembly that a person reads."""
    context = PassContext.create(target, options)
    run_stage("S4", stage_s4(target), module, context)
    return assembly(module, context)
