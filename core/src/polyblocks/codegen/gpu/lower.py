"""``lower_program`` as far as it is the same for all GPUs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polyblocks.artifact import Artifact
from polyblocks.codegen.gpu.machine_code import stage
from polyblocks.codegen.gpu.manifest import (
    OPTIMIZED,
    Resources,
    blob_name,
    manifest_of,
    timed,
)
from polyblocks.codegen.gpu.plan import kernels
from polyblocks.options import CompileOptions
from polyblocks.pipeline import PassContext, run_stage
from polyblocks.target import TargetDescription

#: From a module in form L to code by form (endings of blobs), and the kernels' resources.
Build = Callable[[Any, PassContext], tuple[dict[str, bytes], dict[str, Resources]]]
#: From a module in form L to the optimized LLVM IR with the places of the source, as text.
Optimize = Callable[[Any, PassContext], str]


def lower_kernels(
    module: Any,
    target: TargetDescription,
    options: CompileOptions,
    passes: list[Any],
    build: Build,
    optimize: Optimize,
) -> Artifact:
    """Lower a module after S3 to an Artifact.

    Args:
        module: consumed; ends in form L (:mod:`polyblocks.codegen.gpu.stage`).
        target: a description made by the target.
        options: the checked options. With ``simulate`` the artifact holds what LLVM made of the
            kernels as text (``kernels.ARCH.ll``) and no machine code.
        passes: those of S4.
        build: S5 of the target.
        optimize: S5 of the target as far as LLVM's optimizer, for the simulator.

    Raises:
        PassError: a pass failed.
        UnsupportedError: an op has no lowering, or the code is rejected.
    """
    context = PassContext.create(target, options)
    run_stage("S4", passes, module, context)
    forms: dict[str, bytes] = {}
    resources: dict[str, Resources] = {}
    if options.simulate:
        with stage():
            text = optimize(module, context) if kernels(module) else ""
        forms = {OPTIMIZED: text.encode()}
    elif kernels(module):
        with stage():
            forms, resources = build(module, context)
    blobs = {blob_name(target.arch, form): data for form, data in forms.items()}
    manifest = manifest_of(module, resources)
    # Time is not simulated.
    if options.profile and not options.simulate:
        manifest["profile"] = timed(manifest)
    return Artifact(manifest, blobs)
