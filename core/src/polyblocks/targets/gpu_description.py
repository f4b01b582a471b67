"""Makes a GPU's TargetDescription of the numbers in a target's tables, the same way for all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from polyblocks.options import PRECISION_MODES
from polyblocks.target import (
    Fragment,
    GroupUnit,
    Latencies,
    MatrixUnit,
    MemoryLevel,
    Multiprocessor,
    ParallelLevel,
    TargetDescription,
)

#: Bytes of a register.
WORD = 4
#: Operands that a multiply-add reads from the registers.
OPERANDS = 3
#: Latencies of common GPUs, to the order of magnitude, for chips without measured ones.
COMMON_LATENCIES = Latencies(
    memory=0.5e-6,
    load_step=60e-9,
    shared_load=4e-9,
    exchange=60e-9,
    barrier=20e-9,
    warp_reduce=60e-9,
    issue=1e-9,
)


@dataclass(frozen=True)
class UnitRate:
    """One matrix instruction of a multiprocessor.

    Attributes:
        name: the name by which the target's lowering knows it.
        shape: (m, n, k).
        operands, accumulator: dtypes. Besides those of arrays there are ``tfloat32`` (float32 with
            ten bits of mantissa read), ``float8_e4m3`` and ``float8_e5m2``.
        rate: multiply-adds per cycle of one multiprocessor.
        fragments, intrinsic, immediates, rounding: see :class:`polyblocks.target.MatrixUnit`.
        group: what a unit of several warps has besides, by the names of
            :class:`polyblocks.target.GroupUnit`.
    """

    name: str
    shape: tuple[int, int, int]
    operands: str
    accumulator: str
    rate: float
    fragments: tuple[Fragment, Fragment, Fragment] | None = None
    intrinsic: str = ""
    immediates: tuple[tuple[int, bool], ...] = ()
    rounding: str = ""
    group: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Cache:
    """A cache that all multiprocessors share.

    Attributes:
        name: ``L2``, ….
        size: bytes.
        bandwidth: bytes per second for all of them; 0 if unknown.
        gathered: see :class:`polyblocks.target.MemoryLevel`.
    """

    name: str
    size: int
    bandwidth: float
    gathered: float = 1.0


@dataclass(frozen=True)
class Figures:
    """The numbers in which chips with the same multiprocessors differ.

    Attributes:
        multiprocessors: how many there are.
        hertz: their clock.
        rates: multiply-adds per cycle of one of them by dtype, vector units.
        caches: nearest first.
        bandwidth: bytes per second of the memory, as published.
        launch_overhead: seconds that one more kernel takes.
        shared_units: how many memories the shared memory of a multiprocessor is made of; each has
            all the banks that :class:`Multiprocessor` counts.
    """

    multiprocessors: int
    hertz: float
    rates: Mapping[str, float]
    caches: tuple[Cache, ...]
    bandwidth: float
    launch_overhead: float
    shared_units: int = 1


#: Part of the memory's published rate that streams reach. A copy of 1 GB on an H100 takes 3.00 of
#: 3.35 TB/s (bench/results); refreshing DRAM and turning its bus around takes some on any chip.
STREAMED = 0.9

#: Modes of contractions without a unit, and those with one of these (operands, sums).
_PLAIN_MODES = ("fp32", "int32")
_MODES = {
    ("float16", "float32"): ("fp16", "mixed_fp16_fp32"),
    ("bfloat16", "float32"): ("mixed_bf16_fp32",),
    ("tfloat32", "float32"): ("tf32",),
    ("int8", "int32"): ("mixed_int8_int32",),
}

#: Options that all GPUs support, besides the modes of their units.
OPTIONS: Mapping[str, tuple[Any, ...]] = {
    "polyblocks_gpu_no_tensor_core": (True,),
    "on_gpu_tensors": (True,),
    "device_one_time_load": (False,),
    "use_graph": (True,),
    "simulate": (True,),
}


def precision_modes(units: Iterable[UnitRate]) -> tuple[str, ...]:
    """The values of ``mm_conv_precision_mode`` that a chip has: those of units that it can use."""
    has = {(u.operands, u.accumulator) for u in units if u.fragments is not None}
    found = {
        *_PLAIN_MODES,
        *(mode for types, modes in _MODES.items() if types in has for mode in modes),
    }
    return tuple(mode for mode in PRECISION_MODES if mode in found)


def describe_gpu(
    name: str,
    arch: str,
    multiprocessor: Multiprocessor,
    figures: Figures,
    matrix_units: tuple[MatrixUnit, ...],
    modes: tuple[str, ...],
    properties: Mapping[str, Any],
) -> TargetDescription:
    """The description with all levels and rates.

    Args:
        name: of the target.
        arch: the resolved architecture.
        multiprocessor: its limits.
        figures: of the chip.
        matrix_units: from :func:`matrix_units_at`.
        modes: from :func:`precision_modes`.
        properties: for the target's own lowering.
    """
    limits = multiprocessor
    count = figures.multiprocessors
    registers = OPERANDS * WORD * figures.rates["float32"] * figures.hertz
    shared = figures.shared_units * limits.banks * limits.bank_bytes * figures.hertz
    return TargetDescription(
        name=name,
        arch=arch,
        parallel=(
            ParallelLevel("grid", count, figures.launch_overhead),
            ParallelLevel("block", limits.blocks),
            ParallelLevel("warp", limits.threads_per_block // limits.warp),
            ParallelLevel("thread", limits.warp),
        ),
        memory=(
            MemoryLevel("registers", limits.registers * WORD, registers, WORD),
            MemoryLevel("shared", limits.shared, shared, limits.bank_bytes),
            *(
                MemoryLevel(
                    *(c.name, c.size, c.bandwidth, limits.sector, count),
                    gathered=c.gathered,
                )
                for c in figures.caches
            ),
            MemoryLevel("main", 0, STREAMED * figures.bandwidth, limits.sector, count),
        ),
        flops={d: 2.0 * rate * count * figures.hertz for d, rate in figures.rates.items()},
        matrix_units=matrix_units,
        multiprocessor=replace(limits, count=count),
        options={"mm_conv_precision_mode": modes, **OPTIONS},
        properties=properties,
    )


def matrix_units_at(
    units: Iterable[UnitRate], multiprocessors: int, hertz: float
) -> tuple[MatrixUnit, ...]:
    """The matrix units of a chip, by its number of multiprocessors and clock."""

    def unit(u: UnitRate) -> MatrixUnit:
        given = (u.name, u.shape, u.operands, u.accumulator)
        flops = 2.0 * u.rate * multiprocessors * hertz
        if u.group:
            return GroupUnit(*given, flops, intrinsic=u.intrinsic, **dict(u.group))
        return MatrixUnit(
            *given,
            flops,
            fragments=u.fragments,
            intrinsic=u.intrinsic,
            immediates=u.immediates,
            rounding=u.rounding,
        )

    return tuple(map(unit, units))
