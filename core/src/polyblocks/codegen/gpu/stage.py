"""The passes of S4 for every GPU, from form K to form L."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from polyblocks.codegen.define_arithmetic import DefineArithmeticPass
from polyblocks.codegen.expand_copies import ExpandCopiesPass
from polyblocks.codegen.expand_remainder import ExpandRemainderPass
from polyblocks.codegen.gpu.passes.align_vectors import AlignVectorsPass
from polyblocks.codegen.gpu.passes.assign_alias_scopes import AssignAliasScopesPass
from polyblocks.codegen.gpu.passes.assign_memory_spaces import AssignMemorySpacesPass
from polyblocks.codegen.gpu.passes.carry_intrinsics import HideIntrinsicsPass, ShowIntrinsicsPass
from polyblocks.codegen.gpu.passes.check_kernels import CheckKernelsPass, CheckLoweredPass
from polyblocks.codegen.gpu.passes.expand_atomics import ExpandAtomicsPass
from polyblocks.codegen.gpu.passes.extract_launches import ExtractLaunchesPass
from polyblocks.codegen.gpu.passes.fold_launch_sizes import FoldLaunchSizesPass
from polyblocks.codegen.gpu.passes.join_launches import JoinLaunchesPass
from polyblocks.codegen.gpu.passes.keep_loops import KeepLoopsPass
from polyblocks.codegen.gpu.passes.lower_checks import LowerChecksPass
from polyblocks.codegen.gpu.passes.merge_kernels import MergeKernelsPass
from polyblocks.codegen.gpu.passes.place_shared_memory import PlaceSharedMemoryPass
from polyblocks.codegen.gpu.passes.scope_atomics import ScopeAtomicsPass
from polyblocks.codegen.gpu.passes.vectorize_pairs import VectorizePairsPass
from polyblocks.codegen.guard_divisions import GuardDivisionsPass
from polyblocks.codegen.lower_half_types import LowerHalfTypesPass
from polyblocks.codegen.only_with import MEMORY, Contents, OnlyWith
from polyblocks.codegen.store_booleans_as_bytes import StoreBooleansAsBytesPass
from polyblocks.pipeline import FunctionPass, PassContext, UpstreamPass


@dataclass(frozen=True)
class Dialect:
    """The parts of S4 that differ between targets.

    Attributes:
        conversion: textual passes inside of the ``gpu.module``, from ``gpu`` ops and all others to
            the LLVM dialect and the target's own.
        names: the target's own dialects.
        device_scope: LLVM's synchronization scope of all threads of the device.
        block_scope: LLVM's synchronization scope of a block.
        before: passes of the target right before the conversion.
        after: passes of the target right after it.
    """

    conversion: str
    names: tuple[str, ...]
    device_scope: str
    block_scope: str
    before: tuple[Any, ...] = field(default=())
    after: tuple[Any, ...] = field(default=())


def kernel_stage(dialect: Dialect) -> list[Any]:
    """The passes of S4 in order.

    Input: a ``gpu.module`` with ``gpu.func`` kernels, and a ``@main`` that launches them.
    Output: a ``gpu.module`` with ``llvm.func`` kernels that take bare pointers, and the
    launch plan as an attribute (:mod:`polyblocks.codegen.gpu.plan`).
    """
    contents = Contents()
    return [
        # First, since types of kernels and their launches would have to be changed together.
        ExtractLaunchesPass(),
        # When kernels have their constants, and before anything is done for each of them.
        MergeKernelsPass(),
        OnlyWith(StoreBooleansAsBytesPass(), (f"{MEMORY}i1",), contents),
        ExpandCopiesPass(),
        GuardDivisionsPass(),
        LowerChecksPass(),
        FoldLaunchSizesPass(),
        ExpandAtomicsPass(),
        # From here on arithmetic that would become library calls is replaced, by the same code as
        # on all other targets; each pass leaves only what the following ones can do.
        OnlyWith(
            UpstreamPass("lower-complex", "convert-complex-to-standard,canonicalize"),
            ("complex",),
            contents,
        ),
        # GPUs convert the half types themselves, or LLVM does it for them.
        OnlyWith(LowerHalfTypesPass(expand_bf16=False), ("bf16", "f16"), contents),
        FunctionPass("expand-math", _expand_math),
        ExpandRemainderPass(),
        # When no other expansion is left that converts or shifts.
        DefineArithmeticPass(),
        UpstreamPass("lower-affine", "gpu.module(gpu.func(lower-affine,canonicalize,cse))"),
        # When no index is affine any more: a kernel's own top is no longer the top there.
        JoinLaunchesPass(),
        CheckKernelsPass(dialect.names),
        AssignMemorySpacesPass(),
        PlaceSharedMemoryPass(),
        # When all indices are sums and products.
        AlignVectorsPass(),
        UpstreamPass(
            "lower-loops",
            "gpu.module(expand-strided-metadata,lower-affine,"
            "gpu.func(canonicalize,cse,loop-invariant-code-motion),convert-scf-to-cf,"
            "convert-to-llvm{filter-dialects=math})",
        ),
        HideIntrinsicsPass(),
        *dialect.before,
        UpstreamPass(
            "convert-kernels",
            f"gpu.module({dialect.conversion},"
            "convert-to-llvm{filter-dialects=complex,arith,index,ub,vector,cf},"
            "reconcile-unrealized-casts,canonicalize{region-simplify=disabled},cse)",
        ),
        ShowIntrinsicsPass(),
        KeepLoopsPass(),
        *dialect.after,
        ScopeAtomicsPass(dialect.device_scope, dialect.block_scope),
        VectorizePairsPass(),
        # When every access that LLVM will see is there.
        AssignAliasScopesPass(),
        CheckLoweredPass(dialect.names),
    ]


def _expand_math(module: Any, context: PassContext) -> bool:
    """Elementary functions become straight-line arithmetic; every GPU has fused multiply-add."""
    from polyblocks.codegen.vector_math import expand_math

    del context
    return expand_math(module, fma=True) > 0
