"""``lower_program``: stages S4 (to the LLVM dialect) and S5 (to object files)."""

from __future__ import annotations

from typing import Any

from polyblocks import signature
from polyblocks.artifact import Artifact
from polyblocks.attributes import (
    CHECKS_ATTRIBUTE,
    ESTIMATES_ATTRIBUTE,
    KIND_ATTRIBUTE,
    MULTIPLY,
    NESTS_ATTRIBUTE,
    SOURCES_ATTRIBUTE,
    VECTOR_ATTRIBUTE,
)
from polyblocks.codegen.define_arithmetic import UNDEFINED, DefineArithmeticPass
from polyblocks.codegen.expand_copies import ExpandCopiesPass
from polyblocks.codegen.expand_fma import ExpandFmaPass
from polyblocks.codegen.expand_half_conversions import ExpandHalfConversionsPass
from polyblocks.codegen.expand_remainder import ExpandRemainderPass
from polyblocks.codegen.expand_rounding import ExpandRoundingPass
from polyblocks.codegen.guard_divisions import DIVISIONS, GuardDivisionsPass
from polyblocks.codegen.lower_half_types import LowerHalfTypesPass
from polyblocks.codegen.merge_rare_branches import MergeRareBranchesPass
from polyblocks.codegen.only_with import MEMORY, Contents, OnlyWith, OnlyWithOps
from polyblocks.codegen.schedule_vectors import ScheduleVectorsPass
from polyblocks.codegen.store_booleans_as_bytes import StoreBooleansAsBytesPass
from polyblocks.codegen.units.lower_units import LowerUnitsPass
from polyblocks.codegen.vector_math import EXPANDED, expand_math
from polyblocks.options import CompileOptions
from polyblocks.pipeline import FunctionPass, PassContext, UpstreamPass, run_stage
from polyblocks.target import TargetDescription
from polyblocks_cpu.archs import X86
from polyblocks_cpu.describe import required_features
from polyblocks_cpu.emit import assembly, checked_symbols, compile_llvm
from polyblocks_cpu.instructions.conversions import conversions
from polyblocks_cpu.instructions.dot_emitter import DotInstructions
from polyblocks_cpu.instructions.dots import DOTS
from polyblocks_cpu.instructions.permute import pick_from
from polyblocks_cpu.instructions.scalef import multiply_by_power
from polyblocks_cpu.instructions.tile_emitter import TileInstructions
from polyblocks_cpu.instructions.tiles import PRODUCTS
from polyblocks_cpu.load import object_name
from polyblocks_cpu.lookups.permute_lookups import PermuteLookupsPass
from polyblocks_cpu.passes.emit_entry import ENTRY, EmitEntryPass
from polyblocks_cpu.passes.estimate_roots import EstimateRootsPass
from polyblocks_cpu.passes.hoist_addresses import HoistAddressesPass
from polyblocks_cpu.passes.hold_halves_as_integers import HoldHalvesAsIntegersPass
from polyblocks_cpu.passes.lower_asserts import LowerAssertsPass
from polyblocks_cpu.passes.map_openmp import MapOpenmpPass
from polyblocks_cpu.passes.merge_kernels import CALLS, MergeKernelsPass
from polyblocks_cpu.passes.outline_kernels import OutlineKernelsPass
from polyblocks_cpu.passes.outline_teams import OutlineTeamsPass
from polyblocks_cpu.passes.pair_gathers import GATHER, PairGathersPass
from polyblocks_cpu.passes.share_team import ShareTeamPass
from polyblocks_cpu.passes.time_kernels import ROWS, TimeKernelsPass
from polyblocks_cpu.team.kernels import TRIPS

#: Emitters of the units of tiles, by the unit's name.
TILE_EMITTERS = dict.fromkeys(PRODUCTS, TileInstructions)
#: The same of units of vectors.
DOT_EMITTERS = {name: DotInstructions(dot) for name, dot in DOTS.items()}


def stage_s4(target: TargetDescription, profile: bool = False) -> list[Any]:
    """The passes of S4 in order: from affine nests to the LLVM dialect.

    Args:
        target: a description made by this target.
        profile: time every kernel.
    """
    contents = Contents()
    return [
        *_share_kernels(contents, profile),
        *_expand_arithmetic(target, contents),
        *_convert_to_llvm(contents),
    ]


def _share_kernels(contents: Contents, profile: bool) -> list[Any]:
    """Kernels as functions, and teams of threads that run them."""
    return [
        # Loops and scalars as LLVM likes them. Checks come before kernels are outlined, since a
        # kernel with a check gets the status as one more argument.
        OnlyWith(StoreBooleansAsBytesPass(), (f"{MEMORY}i1",), contents),
        OnlyWithOps(ExpandCopiesPass(), {"memref.copy"}, contents),
        OnlyWithOps(GuardDivisionsPass(), DIVISIONS, contents),
        LowerAssertsPass(),
        # Before lower-affine, which drops the attributes that mark kernels.
        OutlineKernelsPass(),
        MergeKernelsPass(),
        # When what a kernel touches is seen at its call, and its iterations are a loop.
        ShareTeamPass(timed=profile),
        # While calls of kernels are distinct from others, and a team's are one.
        *([TimeKernelsPass()] if profile else []),
        MapOpenmpPass(),
    ]


def _expand_arithmetic(target: TargetDescription, contents: Contents) -> list[Any]:
    """Arithmetic that the chip's instructions do, in place of what LLVM would call a library for.

    Each pass leaves only what the following ones and the chip's instructions can do.
    """
    has = target.properties
    held = ("bf16",) if has["half"] else ("bf16", "f16")
    return [
        OnlyWith(
            UpstreamPass("lower-complex", "convert-complex-to-standard,canonicalize"),
            ("complex",),
            contents,
        ),
        OnlyWith(LowerHalfTypesPass(), ("bf16", "f16"), contents),
        OnlyWithOps(EstimateRootsPass(), {"math.rsqrt", "math.sqrt"}, contents),
        OnlyWithOps(FunctionPass("expand-math", _expand_math), EXPANDED, contents),
        OnlyWithOps(ExpandRemainderPass(has["fma"]), {"arith.remf"}, contents),
        *([] if has["rounding"] else [ExpandRoundingPass()]),
        *([] if has["fma"] else [ExpandFmaPass()]),
        *([] if has["half"] else [ExpandHalfConversionsPass()]),
        # When no other expansion is left that converts or shifts.
        OnlyWithOps(_define_arithmetic(target), UNDEFINED | EXPANDED | {"arith.remf"}, contents),
        # Last of these, when nothing computes with halves any more.
        OnlyWith(HoldHalvesAsIntegersPass(held), held, contents),
        # Whose instructions take halves again.
        OnlyWithOps(
            LowerUnitsPass(TILE_EMITTERS, DOT_EMITTERS), {MULTIPLY, "llvm.call_intrinsic"}, contents
        ),
    ]


def _convert_to_llvm(contents: Contents) -> list[Any]:
    """Loops, memory and what is left of arithmetic in the LLVM dialect."""
    return [
        # Constants without a reader would be written into the object file.
        # Unused results of `lower-affine` go first: from the bottom up it takes half the time.
        UpstreamPass(
            "lower-affine",
            "func.func(lower-affine,canonicalize{region-simplify=disabled top-down=0},cse),"
            "symbol-dce",
        ),
        HoistAddressesPass(),
        # Operations that `expand-math` turns into such branches, or a branch of a dump.
        OnlyWithOps(MergeRareBranchesPass(), EXPANDED | {"scf.if"}, contents),
        OnlyWithOps(PermuteLookupsPass(), {"vector.gather"}, contents),
        ScheduleVectorsPass(),
        UpstreamPass(
            "lower-loops",
            # Pointers are computed before the loops that leave them unchanged, while there are
            # loops and every access has become pointers.
            "expand-strided-metadata,lower-affine,"
            # One conversion for all of these: a pass of its own for each costs 20 ms apiece.
            "convert-to-llvm{filter-dialects=memref,complex,math,arith,index,ub,vector},"
            "func.func(loop-invariant-code-motion),convert-scf-to-cf",
        ),
        # OpenMP regions are converted after the functions: the other order turns captured
        # pointers into memref descriptors that the bare-pointer convention cannot pass.
        UpstreamPass(
            "convert-to-llvm",
            "convert-func-to-llvm{use-bare-ptr-memref-call-conv=1},"
            "convert-openmp-to-llvm,"
            "convert-to-llvm{filter-dialects=cf,arith,index},"
            "reconcile-unrealized-casts",
        ),
        # Memref descriptors fold away, so that OpenMP regions capture bare pointers. It halves the
        # work of LLVM.
        UpstreamPass("simplify-llvm", "canonicalize{region-simplify=disabled top-down=0}"),
        OnlyWithOps(PairGathersPass(), {"vector.gather", GATHER}, contents),
        OutlineTeamsPass(),
        EmitEntryPass(),
    ]


def _define_arithmetic(target: TargetDescription) -> DefineArithmeticPass:
    x86 = target.properties["family"] == X86
    return DefineArithmeticPass(conversions(target) if x86 else None)


def _expand_math(module: Any, context: PassContext) -> bool:
    """Elementary functions become straight-line arithmetic that LLVM vectorizes."""
    return expand_math(module, **math_instructions(context.target)) > 0


def math_instructions(target: TargetDescription) -> dict[str, Any]:
    """Instructions of a CPU for elementary functions, as arguments of ``expand_math``."""
    has = target.properties
    # All of them came with AVX-512.
    own = {"ldexp": True, "scale": multiply_by_power, "table": pick_from} if has["ldexp"] else {}
    return {"fma": has["fma"], **own}


def lower_program(module: Any, target: TargetDescription, options: CompileOptions) -> Artifact:
    """Lower a module after S3 to an Artifact of object files.

    Args:
        module: consumed; ends in the LLVM dialect.
        target: a description made by this target.
        options: the checked options.

    Raises:
        PassError: a pass failed.
        UnsupportedError: LLVM rejects the code, or the code calls a function that no library
            provides.
    """
    arguments = [row for row in signature.rows(module) if row["role"] != "status"]
    context = PassContext.create(target, options)
    run_stage("S4", stage_s4(target, options.profile), module, context)
    kernels = _kernels(module)
    objects = compile_llvm(module, context, kernels)
    sizes = checked_symbols(objects)
    manifest = {
        "entry": ENTRY,
        "arguments": arguments,
        "kernels": [k | {"code_bytes": sizes.get(k["name"])} for k in kernels],
        "checks": _checks(module),
        "requires": required_features(target),
    }
    if options.profile:
        manifest["profile"] = _profile(module)
    return Artifact(manifest, {object_name(i): data for i, data in enumerate(objects)})


def lower_to_assembly(module: Any, target: TargetDescription, options: CompileOptions) -> str:
    """As :func:`lower_program`, but the text that a person reads."""
    run_stage("S4", stage_s4(target), module, PassContext.create(target, options))
    return assembly(module, target, _kernels(module))


def _kernels(module: Any) -> list[dict[str, Any]]:
    """Rows of the outlined kernels.

    Keys: ``name``, ``parallel`` (iterations that threads share), ``kind``, ``sources`` (``op
    file:line``), ``calls`` in one run of the program, ``nests`` (names, one for each call) and
    ``estimate`` (of all calls, see :class:`polyblocks.affine.cost.estimate.Estimate`).
    """
    from polyblocks.affine.cost.estimate import combine
    from polyblocks.affine.mlir.json_attributes import from_attribute

    rows = []
    for op in module.body.operations:
        a = op.operation.attributes
        if TRIPS in a:
            row: dict[str, Any] = {"name": a["sym_name"].value, "parallel": a[TRIPS].value}
            row["kind"] = a[KIND_ATTRIBUTE].value if KIND_ATTRIBUTE in a else ""
            row["vector"] = list(a[VECTOR_ATTRIBUTE]) if VECTOR_ATTRIBUTE in a else []
            row["sources"] = (
                [s.value for s in a[SOURCES_ATTRIBUTE]] if SOURCES_ATTRIBUTE in a else []
            )
            row["calls"] = a[CALLS].value if CALLS in a else 1
            row["nests"] = [n.value for n in a[NESTS_ATTRIBUTE]] if NESTS_ATTRIBUTE in a else []
            row["estimate"] = combine([from_attribute(e) for e in a.get(ESTIMATES_ATTRIBUTE, ())])
            rows.append(row)
    return rows


def _profile(module: Any) -> list[dict[str, str]]:
    """The owner of each row of the profile's table: ``kernel`` and ``nest``."""
    pairs = [[name.value for name in pair] for pair in module.operation.attributes[ROWS]]
    return [{"kernel": kernel, "nest": nest} for kernel, nest in pairs]


def _checks(module: Any) -> list[str]:
    """Messages of the program's run-time checks, by status less one."""
    from polyblocks.affine.mlir.json_attributes import read_json

    messages: list[str] = read_json(module, CHECKS_ATTRIBUTE, [])
    return messages
