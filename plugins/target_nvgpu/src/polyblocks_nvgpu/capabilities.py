"""Facts of the multiprocessors of each compute capability, for every chip.

Sources. Limits of threads, blocks, registers and shared memory: the table of technical
specifications by compute capability in NVIDIA's CUDA programming guide; how they are handed out:
the occupancy calculator's header of the CUDA toolkit (13.0). Rates of the vector units: the guide's
table of the throughput of native arithmetic instructions. Rates of the matrix units: the white
papers of Volta, Turing, Ampere (GA100, GA102), Ada, Hopper and Blackwell, without sparsity.
"""

from __future__ import annotations

from dataclasses import dataclass

from polyblocks.target import AsynchronousCopies, Multiprocessor
from polyblocks.targets.gpu_description import COMMON_LATENCIES, UnitRate
from polyblocks_nvgpu import group_units
from polyblocks_nvgpu.bulk.copies import BULK_COPIES
from polyblocks_nvgpu.fragments import TF32_ROUNDING, TILE_LOADS, UNITS

KIB = 1024
WARP = 32


@dataclass(frozen=True)
class Capability:
    """One compute capability.

    Attributes:
        number: (major, minor).
        multiprocessor: its limits.
        rates: multiply-adds per cycle of one multiprocessor by dtype, vector units.
        l2_rate: bytes per cycle that one multiprocessor gets from L2 while all of them stream.
        units: matrix instructions, best first.
        accelerated_units: those that only code for this one capability may use (architectures
            whose names end in ``a``); better than ``units``.
        l2_gathered: see ``gathered`` of :class:`polyblocks.target.MemoryLevel`.
    """

    number: tuple[int, int]
    multiprocessor: Multiprocessor
    rates: dict[str, int]
    l2_rate: float
    units: tuple[UnitRate, ...]
    accelerated_units: tuple[UnitRate, ...] = ()
    l2_gathered: float = 1.0


#: ``cp.async`` past the first level of the caches.
_COPIES = AsynchronousCopies(
    bytes=16,
    start="llvm.nvvm.cp.async.cg.shared.global.16.s",
    close="llvm.nvvm.cp.async.commit.group",
    wait="llvm.nvvm.cp.async.wait.group",
)


def _multiprocessor(
    threads: int,
    blocks: int,
    shared: int,
    per_block: int,
    modern: bool = True,
    loading: bool = True,
    bulk: bool = False,
) -> Multiprocessor:
    """Sizes of shared memory in KiB; ``modern`` is 8.0 and later, ``loading`` 7.5, ``bulk`` 9.0."""
    return Multiprocessor(
        warp=WARP,
        threads=threads,
        blocks=blocks,
        single_warp_blocks=blocks,
        threads_per_block=1024,
        block_limits=(1024, 1024, 64),
        grid_limits=(2**31 - 1, 65535, 65535),
        partitions=4,
        registers=64 * KIB,
        registers_per_thread=255,
        # 256 registers of a warp.
        register_granularity=8,
        shared=shared * KIB,
        shared_per_block=48 * KIB,
        shared_per_block_optin=per_block * KIB,
        shared_granularity=128 if modern else 256,
        shared_reserved=KIB if modern else 0,
        asynchronous_copies=_COPIES if modern else None,
        bulk_copies=BULK_COPIES if bulk else None,
        tile_loads=TILE_LOADS if loading else None,
        power_of_two="llvm.nvvm.ex2.approx.ftz.f32",
        latencies=COMMON_LATENCIES,
        loads_in_flight=4,
        busy_threads=512,
        busy_warps=8,
        cache=32 * KIB,
    )


def _rates(half: int, bfloat: int, single: int, double: int) -> dict[str, int]:
    return {
        "float16": half,
        "bfloat16": bfloat,
        "float32": single,
        "float64": double,
        "int32": 64,
    }


def _half_units(name: str, shape: tuple[int, int, int], rate: int, bfloat: bool) -> list[UnitRate]:
    """float16 into both accumulators, and bfloat16, which has one."""
    wide = [
        UnitRate(name, shape, dtype, "float32", rate, *UNITS.get((shape, dtype), ()))
        for dtype in ("float16", "bfloat16")
    ]
    return [wide[0], UnitRate(name, shape, "float16", "float16", rate), *wide[1:] * bfloat]


def _float8_units(name: str, shape: tuple[int, int, int], rate: int) -> list[UnitRate]:
    return [UnitRate(name, shape, o, "float32", rate) for o in ("float8_e4m3", "float8_e5m2")]


#: Four of 8 x 8 x 4.
_VOLTA = tuple(_half_units("mma.m8n8k4", (16, 16, 4), 512, False))
_XAVIER = (*_VOLTA, UnitRate("wmma.m16n16k16", (16, 16, 16), "int8", "int32", 1024))
_TURING = (
    *_half_units("mma.m16n8k8", (16, 8, 8), 512, False),
    UnitRate("mma.m8n8k16", (8, 8, 16), "int8", "int32", 1024, *UNITS[(8, 8, 16), "int8"]),
)


def _mma(half: int, double: int = 0, float8: int = 0) -> tuple[UnitRate, ...]:
    """``mma.sync`` of 8.0 and later; the other types' rates follow from float16's."""
    units = [
        *_half_units("mma.m16n8k16", (16, 8, 16), half, True),
        UnitRate(
            *("mma.m16n8k8", (16, 8, 8), "tfloat32", "float32", half // 2),
            *UNITS[(16, 8, 8), "tfloat32"],
            rounding=TF32_ROUNDING,
        ),
        UnitRate(
            "mma.m16n8k32", (16, 8, 32), "int8", "int32", half * 2, *UNITS[(16, 8, 32), "int8"]
        ),
    ]
    if float8:
        units += _float8_units("mma.m16n8k32", (16, 8, 32), float8)
    if double:
        name, shape = "mma.m8n8k4", (8, 8, 4)
        fragments = UNITS[shape, "float64"]
        units.append(UnitRate(name, shape, "float64", "float64", double, *fragments))
    return tuple(units)


def _asynchronous(name: str, m: int, n: int, half: int, integers: bool) -> tuple[UnitRate, ...]:
    """The instructions that read their operands from shared memory: ``wgmma``, ``tcgen05.mma``."""

    def unit(k: int, operands: str, accumulator: str, rate: int) -> UnitRate:
        return UnitRate(f"{name}.m{m}n{n}k{k}", (m, n, k), operands, accumulator, rate)

    units = [
        unit(16, "float16", "float16", half),
        unit(8, "tfloat32", "float32", half // 2),
        unit(32, "float8_e4m3", "float32", half * 2),
        unit(32, "float8_e5m2", "float32", half * 2),
    ]
    return (*units, unit(32, "int8", "int32", half * 2)) if integers else tuple(units)


def _halves(name: str, m: int, n: int, half: int) -> tuple[UnitRate, ...]:
    """Those of 16 bits into float32, which nothing is generated for."""
    shape = (m, n, 16)
    return tuple(
        UnitRate(f"{name}.m{m}n{n}k16", shape, dtype, "float32", half)
        for dtype in ("float16", "bfloat16")
    )


# The instructions of a warp reach five eighths of the peak of 9.0 (Luo et al., "Benchmarking and
# Dissecting the Nvidia Hopper GPU Architecture", 2024), and are taken for those of 8.0 on 10.x.
_HOPPER = (
    _mma(1280, 128, 2560),
    (*group_units.units(2048), *_asynchronous("wgmma", 64, 256, 2048, False)),
)
_TCGEN05 = _halves("tcgen05", 128, 256, 4096)
_BLACKWELL = (
    _mma(1024, 64, 2048),
    (*_TCGEN05, *_asynchronous("tcgen05", 128, 256, 4096, True)),
)
_BLACKWELL_ULTRA = (
    _mma(1024, 0, 2048),
    (*_TCGEN05, *_asynchronous("tcgen05", 128, 256, 4096, False)),
)

#: Rates of L2 are those of the white papers (2048 bytes per cycle on V100, 5120 on A100) or what
#: public measurements of streaming reads show, rounded. Products of 8192 read 40 bytes per cycle on
#: an H200: their tiles of 128 x 256 x 64 take 740 TFLOP/s at 1.635 GHz.
_TABLE = (
    Capability((7, 0), _multiprocessor(2048, 32, 96, 96, False, False),
               _rates(128, 64, 64, 32), 25, _VOLTA),
    Capability((7, 2), _multiprocessor(2048, 32, 96, 96, False, False),
               _rates(128, 64, 64, 32), 32, _XAVIER),
    Capability((7, 5), _multiprocessor(1024, 16, 64, 64, False),
               _rates(128, 64, 64, 2), 24, _TURING),
    Capability((8, 0), _multiprocessor(2048, 32, 164, 163),
               _rates(256, 128, 64, 32), 47, _mma(1024, 64)),
    Capability((8, 6), _multiprocessor(1536, 16, 100, 99),
               _rates(128, 128, 128, 2), 24, _mma(512)),
    Capability((8, 7), _multiprocessor(1536, 16, 164, 163),
               _rates(128, 128, 128, 2), 32, _mma(1024)),
    Capability((8, 9), _multiprocessor(1536, 24, 100, 99),
               _rates(128, 128, 128, 2), 16, _mma(512, 0, 1024)),
    Capability((9, 0), _multiprocessor(2048, 32, 228, 227, bulk=True),
               _rates(256, 256, 128, 64), 22, *_HOPPER, 1.8),
    Capability((10, 0), _multiprocessor(2048, 32, 228, 227),
               _rates(256, 256, 128, 64), 30, *_BLACKWELL),
    Capability((10, 3), _multiprocessor(2048, 32, 228, 227),
               _rates(256, 256, 128, 2), 30, *_BLACKWELL_ULTRA),
    Capability((12, 0), _multiprocessor(1536, 24, 100, 99),
               _rates(128, 128, 128, 2), 16, _mma(512, 0, 1024)),
    Capability((12, 1), _multiprocessor(1536, 24, 100, 99),
               _rates(128, 128, 128, 2), 16, _mma(512, 0, 1024)),
)  # fmt: skip

CAPABILITIES: dict[tuple[int, int], Capability] = {c.number: c for c in _TABLE}
