"""A GPU that does not exist, with the numbers of common ones."""

from __future__ import annotations

from dataclasses import replace

from polyblocks.target import (
    AsynchronousCopies,
    BoundedLoads,
    Fragment,
    Latencies,
    MatrixUnit,
    MemoryLevel,
    Multiprocessor,
    ParallelLevel,
    TargetDescription,
    TileLoads,
)

CHIP = Multiprocessor(
    warp=32,
    threads=2048,
    blocks=32,
    single_warp_blocks=32,
    threads_per_block=1024,
    block_limits=(1024, 1024, 64),
    grid_limits=(2**31 - 1, 65535, 65535),
    partitions=4,
    registers=65536,
    registers_per_thread=255,
    register_granularity=8,
    shared=228 << 10,
    shared_per_block=48 << 10,
    shared_per_block_optin=227 << 10,
    shared_granularity=128,
    shared_reserved=1024,
    latencies=Latencies(0.5e-6, 60e-9, 4e-9, 60e-9, 20e-9, 60e-9, 1e-9),
    loads_in_flight=4,
    busy_threads=512,
    busy_warps=8,
    cache=32 << 10,
)

_ROWS = ((1, 0), (2, 0), (4, 0), (8, 0))
_STEPS = ((0, 1), (0, 2), (0, 4))
_OPERAND = Fragment((*_ROWS, (0, 8)), _STEPS, "vector<8xf16>")
#: Half of a warp has the first half of the steps, and of the rows of sums.
UNIT = MatrixUnit(
    "unit",
    (16, 16, 16),
    "float16",
    "float32",
    6e14,
    fragments=(
        _OPERAND,
        _OPERAND,
        Fragment(((0, 1), (0, 2), (0, 4), (0, 8), (8, 0)), _ROWS[:3], "vector<8xf32>"),
    ),
    intrinsic="llvm.imaginary.multiply",
)


#: Loads of a chip that has such.
BOUNDED = BoundedLoads("llvm.imaginary.describe", 7, 0, "llvm.imaginary.load", 16)
#: Copies past the registers of a chip that has such.
COPIES = AsynchronousCopies(
    16, *(f"llvm.imaginary.copy.{what}" for what in ("start", "close", "wait"))
)


_GROUPS, _PAIRS = ((1, 0), (2, 0), (4, 0)), ((0, 2), (0, 4))
#: A lane's sums are elements of the first operand that it has as well.
CHAINING_UNIT = MatrixUnit(
    "chaining",
    (16, 8, 16),
    "float16",
    "float32",
    6e14,
    fragments=(
        Fragment((*_PAIRS, *_GROUPS), ((0, 1), (8, 0), (0, 8)), "vector<2xf16>"),
        Fragment((*_PAIRS, *_GROUPS), ((0, 1), (0, 8)), "vector<2xf16>"),
        Fragment((*_PAIRS, *_GROUPS), ((0, 1), (8, 0)), "f32"),
    ),
    intrinsic="llvm.imaginary.chain",
)
LOADS = TileLoads("llvm.imaginary.rows", "llvm.imaginary.columns", (*_PAIRS, *_GROUPS))


def gpu_target(
    units: int = 132, bounded: bool = False, copying: bool = False, chaining: bool = False
) -> TargetDescription:
    """A chip of so many multiprocessors.

    Args:
        units: multiprocessors.
        bounded: whether it has loads that find zeros beyond the end of a buffer.
        copying: whether copies go past the registers.
        chaining: whether they do, and its unit's sums are operands of another product.
    """
    chip = replace(
        CHIP,
        bounded_loads=BOUNDED if bounded else None,
        asynchronous_copies=COPIES if copying or chaining else None,
        tile_loads=LOADS if chaining else None,
        power_of_two="llvm.exp2.f32" if chaining else "",
    )
    return TargetDescription(
        "imaginary",
        "one",
        (
            ParallelLevel("grid", units, 4e-6),
            ParallelLevel("block", 32),
            ParallelLevel("warp", 32),
            ParallelLevel("thread", 32),
        ),
        (
            MemoryLevel("registers", 256 << 10, 1e13, 128),
            MemoryLevel("shared", 228 << 10, 2e11, 128),
            MemoryLevel("L2", 50 << 20, 5.5e12, 128, units),
            MemoryLevel("main", 0, 4e12, 128, units),
        ),
        flops={"float32": 6e13, "float64": 3e13},
        matrix_units=(CHAINING_UNIT if chaining else UNIT,),
        multiprocessor=chip,
    )
