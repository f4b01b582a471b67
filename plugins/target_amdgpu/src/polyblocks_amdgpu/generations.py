"""Facts of the work-group processors of each architecture, for every chip.

A multiprocessor is a work-group processor (WGP): two compute units with two SIMDs each, whose local
data share a block can use as a whole. Sources: AMD's manuals of the RDNA 3, 3.5 and 4 instruction
set architectures (registers, local data share, waves), the RDNA white paper (caches), LLVM's user
guide of the AMDGPU back end (allocation of registers and of the local data share, barriers); rates
of the vector and matrix units from AMD's notes on the peak numbers of its products.
"""

from __future__ import annotations

from dataclasses import dataclass

from polyblocks.target import BoundedLoads, Fragment, Multiprocessor
from polyblocks.targets.gpu_description import COMMON_LATENCIES, UnitRate

KIB = 1024
WARP = 32
SIMDS = 4
#: Waves that a SIMD holds.
WAVES = 16
UNITS_PER_WGP = 2

#: Raw buffers, as LLVM's user guide of the AMDGPU back end ("Buffer Resource") and the manuals'
#: table of the resource's words have them: a format that is ignored and may not be 0 (bits 12 to
#: 18), 1 in bit 24, and a check of the offset against the bytes, whatever the stride (bits 28, 29).
BOUNDED_LOADS = BoundedLoads(
    describe="llvm.amdgcn.make.buffer.rsrc",
    space=8,
    flags=7 << 12 | 4 << 15 | 1 << 24 | 3 << 28,
    load="llvm.amdgcn.raw.ptr.buffer.load",
    bytes=16,
)


@dataclass(frozen=True)
class Generation:
    """One generation.

    Attributes:
        rates: multiply-adds per cycle of one work-group processor by dtype, vector units.
        units: matrix instructions, best first.
    """

    rates: dict[str, int]
    units: tuple[UnitRate, ...]


def multiprocessor(registers_of_simd: int, register_granularity: int) -> Multiprocessor:
    """The limits of a work-group processor.

    Args:
        registers_of_simd: vector registers of one SIMD, each one word for every lane of a wave.
        register_granularity: in which portions a wave gets them.
    """
    return Multiprocessor(
        warp=WARP,
        threads=SIMDS * WAVES * WARP,
        # Barriers of a work-group processor; a block of one wave needs none.
        blocks=32,
        single_warp_blocks=SIMDS * WAVES,
        threads_per_block=1024,
        block_limits=(1024, 1024, 1024),
        # A launch counts threads in 32 bits.
        grid_limits=(2**32 // 1024 - 1, 65535, 65535),
        partitions=SIMDS,
        registers=SIMDS * registers_of_simd * WARP,
        registers_per_thread=256,
        register_granularity=register_granularity,
        shared=128 * KIB,
        shared_per_block=64 * KIB,
        shared_per_block_optin=64 * KIB,
        shared_granularity=KIB,
        # Each compute unit's half has 32 banks: accesses that meet no conflict there meet none in
        # the 64 of both.
        banks=32,
        bank_bytes=4,
        shared_units=UNITS_PER_WGP,
        access_bits=128,
        # Half a cache line, what one request between the caches moves.
        sector=64,
        # LLVM takes registers for the scarcest thing, and moves loads to where they are needed.
        scheduling_fence="llvm.amdgcn.sched.barrier",
        bounded_loads=BOUNDED_LOADS,
        one_pipe=True,
        # V_EXP_F32, to one unit in the last place; denormals are 0.
        power_of_two="llvm.amdgcn.exp2.f32",
        latencies=COMMON_LATENCIES,
        loads_in_flight=4,
        busy_threads=512,
        busy_warps=8,
        cache=32 * KIB,
    )


def _wmma(
    kind: str,
    operands: str,
    accumulator: str,
    rate: int,
    fragments: tuple[Fragment, Fragment, Fragment] | None = None,
    immediates: tuple[tuple[int, bool], ...] = (),
) -> UnitRate:
    """``kind``: the types, as LLVM's intrinsic function spells them."""
    result, _, inputs = kind.partition(" ")
    name = f"wmma.{result}.16x16x16.{inputs}"
    intrinsic = f"llvm.amdgcn.{name}" if fragments else ""
    return UnitRate(
        name, (16, 16, 16), operands, accumulator, rate, fragments, intrinsic, immediates
    )


_SIXTEEN = ((1, 0), (2, 0), (4, 0), (8, 0))
_COLUMNS = ((0, 1), (0, 2), (0, 4), (0, 8))


#: Both operands have a sign, and sums wrap around.
_SIGNED = ((0, True), (2, True), (5, False))


def _wave32(register: str, sums: str = "f32") -> tuple[Fragment, Fragment, Fragment]:
    """RDNA3: both halves of a wave have all steps of 16 rows; odd rows of sums are the upper's.

    Source: AMD's RDNA3 ISA guide, "Wave Matrix Multiply Accumulate (WMMA)".
    """
    operand = Fragment((*_SIXTEEN, (0, 0)), _COLUMNS, f"vector<{register}>")
    added = Fragment((*_COLUMNS, (1, 0)), ((2, 0), (4, 0), (8, 0)), f"vector<8x{sums}>")
    return operand, operand, added


def _halves(register: str, sums: str = "f32") -> tuple[Fragment, Fragment, Fragment]:
    """RDNA4: a half of a wave has the first eight steps, and rows of sums, the other one the rest.

    Source: AMD's RDNA4 ISA guide, "Wave Matrix Multiply Accumulate (WMMA)".
    """
    operand = Fragment((*_SIXTEEN, (0, 8)), _COLUMNS[:3], f"vector<{register}>")
    added = Fragment((*_COLUMNS, (8, 0)), _SIXTEEN[:3], f"vector<8x{sums}>")
    return operand, operand, added


#: 64 lanes of a compute unit, twice that in float32 where two instructions are issued at once,
#: and in float16 where one instruction has two operations. bfloat16 is computed in float32.
_RDNA3 = Generation(
    rates={"float16": 256, "bfloat16": 256, "float32": 256, "float64": 8, "int32": 128},
    units=(
        _wmma("f32 f16", "float16", "float32", 512, _wave32("16xf16")),
        _wmma("f16 f16", "float16", "float16", 512),
        _wmma("f32 bf16", "bfloat16", "float32", 512, _wave32("16xi16")),
        _wmma("i32 iu8", "int8", "int32", 512, _wave32("4xi32", "i32"), _SIGNED),
    ),
)
_RDNA4 = Generation(
    rates={"float16": 256, "bfloat16": 256, "float32": 256, "float64": 4, "int32": 128},
    units=(
        _wmma("f32 f16", "float16", "float32", 1024, _halves("8xf16")),
        _wmma("f16 f16", "float16", "float16", 1024),
        _wmma("f32 bf16", "bfloat16", "float32", 1024, _halves("8xi16")),
        _wmma("i32 iu8", "int8", "int32", 2048, _halves("2xi32", "i32"), _SIGNED),
        _wmma("f32 fp8.fp8", "float8_e4m3", "float32", 2048),
        _wmma("f32 bf8.bf8", "float8_e5m2", "float32", 2048),
    ),
)

#: Matrix instructions of all generations.
UNITS = (*_RDNA3.units, *_RDNA4.units)

#: The larger register files come with larger portions.
_LARGE = multiprocessor(1536, 24)
_SMALL = multiprocessor(1024, 16)

#: Architecture -> its limits, its rates.
ARCHS: dict[str, tuple[Multiprocessor, Generation]] = {
    "gfx1100": (_LARGE, _RDNA3),
    "gfx1101": (_LARGE, _RDNA3),
    "gfx1102": (_SMALL, _RDNA3),
    "gfx1103": (_SMALL, _RDNA3),
    "gfx1151": (_LARGE, _RDNA3),
    "gfx1200": (_LARGE, _RDNA4),
    "gfx1201": (_LARGE, _RDNA4),
}
