"""``lower_program``: stages S4 (to the NVVM dialect) and S5 (to PTX and machine code)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
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
from polyblocks_nvgpu import ptxas, register_pressure
from polyblocks_nvgpu.emit import compile_ptx, optimized_ir
from polyblocks_nvgpu.passes.estimate_inverse_roots import EstimateInverseRootsPass
from polyblocks_nvgpu.passes.finish_kernels import FinishKernelsPass
from polyblocks_nvgpu.passes.lower_bulk_copies import LowerBulkCopiesPass
from polyblocks_nvgpu.passes.lower_group_units import LowerGroupUnitsPass


def stage_s4(target: TargetDescription) -> list[Any]:
    """The passes of S4 in order: from ``gpu.func`` kernels to ``llvm.func`` ones with nvvm ops.

    Args:
        target: a description made by this target.
    """
    del target
    stage = kernel_stage(
        Dialect(
            conversion="convert-gpu-to-nvvm{use-bare-ptr-memref-call-conv=1}",
            names=("nvvm",),
            device_scope="device",
            block_scope="block",
            after=(FinishKernelsPass(),),
        )
    )
    # When half types are gone, and before roots of the others are expanded.
    names = [each.name for each in stage]
    stage.insert(names.index("expand-math"), EstimateInverseRootsPass())
    # When nothing looks for calls any more: PTX has instructions for these.
    return [*stage, LowerGroupUnitsPass(), LowerBulkCopiesPass()]


def lower_program(module: Any, target: TargetDescription, options: CompileOptions) -> Artifact:
    """See :func:`polyblocks.codegen.gpu.lower.lower_kernels`.

    The artifact's blobs are ``kernels.ARCH.ptx``, and ``kernels.ARCH.cubin`` if an assembler is
    found that knows the architecture; a driver compiles PTX when it loads it.
    """
    return lower_kernels(module, target, options, stage_s4(target), _build, optimized_ir)


def _build(module: Any, context: PassContext) -> tuple[dict[str, bytes], dict[str, Resources]]:
    ptx = compile_ptx(module, context)
    assembler, arch = ptxas.find(), context.target.properties["cpu"]
    if assembler is None or arch not in ptxas.architectures(assembler):
        return {"ptx": ptx.encode()}, {}
    chip = context.target.multiprocessor
    assert chip is not None
    assembled = partial(ptxas.assemble, assembler, arch=arch)
    with events.timed_pass(STAGE, "assemble"):
        code, resources = assembled(ptx)
        if names := register_pressure.crowded(module, resources):
            ptx = register_pressure.with_room(ptx, names)
            code, resources = assembled(ptx)
            note_blocks(module, chip, resources, names)
        if names := [name for name, used in resources.items() if used.spill_bytes]:
            ptx = register_pressure.with_loops(ptx, names, lambda text: assembled(text)[1])
            code, resources = assembled(ptx)
        if any(used.spill_bytes for used in resources.values()):
            # In the plain text the products of groups of warps would wait for each other.
            less, needed = assembled(ptx, sparing=True)
            if not any(used.spill_bytes for used in needed.values()):
                code, resources = less, needed
        if names := [name for name, used in resources.items() if used.spill_bytes]:
            plain = compile_ptx(module, replace(context, dump_folder=None), level=0)
            ptx = register_pressure.with_least_moved(
                ptx, plain, names, lambda text: assembled(text)[1]
            )
            code, resources = assembled(ptx)
    return {"ptx": ptx.encode(), "cubin": code}, resources


def lower_to_assembly(module: Any, target: TargetDescription, options: CompileOptions) -> str:
    """As :func:`lower_program`, but the PTX that a person reads."""
    context = PassContext.create(target, options)
    run_stage("S4", stage_s4(target), module, context)
    return compile_ptx(module, context)
