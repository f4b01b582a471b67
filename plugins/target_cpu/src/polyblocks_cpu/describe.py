"""``describe_target``: what the mid-level may know of a CPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from polyblocks.options import PRECISION_MODES, CompileOptions
from polyblocks.target import MemoryLevel, ParallelLevel, TargetDescription
from polyblocks_cpu.archs import X86, Arch, lookup
from polyblocks_cpu.host import X86_FEATURES, X86_LEVELS, CacheLevel, Host, host
from polyblocks_cpu.instructions.dots import available, matrix_units
from polyblocks_cpu.instructions.tiles import tile_units

#: Seconds to start and join one parallel region with threads that are awake: 1.1 to 1.8 µs measured
#: with two cores of a Zen 4, more where threads are many.
TEAM_OVERHEAD = 2e-6
#: Seconds in which the threads of a region wait for each other; see ``openmp.BARRIER``.
TEAM_BARRIER = 2e-7
#: An instruction of AVX-512.
COMPRESS = "llvm.experimental.vector.compress"
#: Facts in ``properties``: whether there is a vector instruction for them.
INSTRUCTIONS = ("fma", "half", "rounding")


def describe(options: CompileOptions) -> TargetDescription:
    """The description of ``options.arch``, or of this machine for None and ``native``.

    Raises:
        TargetError: unknown architecture; the message names the nearest ones.
        OptionError: an option asks for what this target does not do.
    """
    if options.arch in (None, "native"):
        return _describe_host(host())
    arch = lookup(options.arch)
    caches = {
        1: CacheLevel(arch.l1, 64, 8, 1),
        2: CacheLevel(arch.l2, 64, 8, 1),
    }
    if arch.l3:
        caches[3] = CacheLevel(arch.l3, 64, 16, arch.l3_cores)
    return _description(arch, (), caches, arch.threads, arch.vector_bits, arch.bandwidth)


def _describe_host(machine: Host) -> TargetDescription:
    arch = machine.arch
    caches = dict(machine.caches) or {
        1: CacheLevel(arch.l1, 64, 8, 1),
        2: CacheLevel(arch.l2, 64, 8, 1),
    }
    # A larger part than the table's has more channels; a few cores cannot draw from all of them.
    channels = max(1.0, machine.threads / arch.threads)
    bandwidth = min(arch.bandwidth * channels, arch.core_bandwidth * machine.threads)
    return _description(
        arch, machine.features, caches, machine.threads, arch.vector_bits, bandwidth
    )


def _description(
    arch: Arch,
    features: tuple[str, ...],
    caches: dict[int, CacheLevel],
    threads: int,
    vector_bits: int,
    bandwidth: float,
) -> TargetDescription:
    clock = arch.ghz * 1e9
    # Hardware threads of one core share its pipelines and its first-level cache.
    per_core = min(caches[1].shared_by if 1 in caches else 1, threads)
    memory = []
    for level, cache in sorted(caches.items()):
        cores = max(1, min(cache.shared_by, threads) // per_core)
        rate = arch.rates[min(level, len(arch.rates)) - 1] * clock * cores
        memory.append(
            MemoryLevel(
                *(f"L{level}", cache.size, rate, cache.line, cache.shared_by, cache.ways),
                writes=arch.writes,
            )
        )
    line = memory[0].line if memory else 64
    memory.append(MemoryLevel("main", 0, bandwidth, line, threads, writes=arch.writes))
    float32 = 2.0 * arch.fma_units * (vector_bits // 32) * clock * (threads // per_core)
    # AVX-512: the older sets mask 32 and 64 bits only, the others nothing.
    masks = arch.family == X86 and arch.vector_registers == 32
    return TargetDescription(
        name="cpu",
        arch=arch.name,
        parallel=(
            ParallelLevel("team", threads, TEAM_OVERHEAD, TEAM_BARRIER),
            ParallelLevel("simd", vector_bits // 32),
        ),
        memory=tuple(memory),
        vector_bits=vector_bits,
        vector_registers=arch.vector_registers,
        masked_vectors=masks,
        compress=COMPRESS if masks else "",
        # Where there is no instruction, LLVM loads one after the other.
        gathers=vector_bits > 0,
        multiply_adds_in_flight=arch.fma_latency * arch.fma_units,
        loads_per_multiply_add=arch.loads / arch.fma_units,
        # The effect of `pair-gathers`.
        issue=replace(arch.issue, pairs=True),
        flops={"float32": float32, "float64": float32 / 2},
        matrix_units=(
            *tile_units(_names(features) or arch.tiles, clock * (threads // per_core)),
            *matrix_units(
                available(arch.dots, features),
                vector_bits,
                float32 / (vector_bits // 16),
                arch.fma_units,
            ),
        ),
        # It has no matrix units of a GPU to use.
        options={
            "mm_conv_precision_mode": PRECISION_MODES,
            "polyblocks_gpu_no_tensor_core": (True,),
            "freeze_weights": (True,),
        },
        properties={
            "family": arch.family,
            "cpu": arch.cpu,
            "features": list(features),
            **{name: name not in arch.lacks for name in INSTRUCTIONS},
            "lowers_clock": arch.lowers_clock,
            "ldexp": _has_ldexp(arch, features),
            "byte_permutes": _has_byte_permutes(arch, features),
        },
    )


def _has_ldexp(arch: Arch, features: Sequence[str]) -> bool:
    """Whether a vector is multiplied by powers of two in one instruction (AVX-512's vscalef)."""
    return arch.family == X86 and arch.vector_registers == 32 and "-avx512f" not in features


def _has_byte_permutes(arch: Arch, features: Sequence[str]) -> bool:
    """Whether bytes of a register are picked by those of another (AVX-512's vpermb, vpermi2b)."""
    if arch.vector_bits != 512:
        return False
    return "avx512vbmi" in (_names(features) if features else arch.features)


def _names(features: Sequence[str]) -> list[str]:
    """Those of LLVM's features that a machine has."""
    return [feature[1:] for feature in features if feature.startswith("+")]


def required_features(target: TargetDescription) -> list[str]:
    """Names of the LLVM features that code for ``target`` may use, as far as hosts tell theirs."""
    if target.properties["features"]:
        return _names(target.properties["features"])
    arch = lookup(target.arch)
    needed = {*arch.tiles, *arch.features}
    if arch.family == X86:
        for level, flags in reversed(X86_LEVELS):
            needed |= {X86_FEATURES[flag] for flag in flags}
            if level == psabi_level(arch):
                break
    return sorted(needed)


def psabi_level(arch: Arch) -> str:
    """The highest x86-64 level whose features are all in ``arch``."""
    if arch.vector_registers == 32:
        return "x86-64-v4"
    if "fma" not in arch.lacks:
        return "x86-64-v3"
    return "x86-64" if "rounding" in arch.lacks else "x86-64-v2"


def missing_features(required: Sequence[str]) -> list[str]:
    """Those of ``required`` that this machine does not have, as far as it tells."""
    features = host().features
    return [name for name in required if f"-{name}" in features]
