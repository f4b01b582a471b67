"""What instructions take of a multiprocessor: its pipes, and how long results are waited for.

Rates of matrix units and of the caches are the target's own (its description says where they are
from). Beside them a scheduler issues one instruction of a warp per cycle, and a pipe is busy for
the warp's threads over its lanes. Sources of the lanes: the table of the throughput of native
arithmetic instructions in NVIDIA's CUDA programming guide (per multiprocessor, of which a partition
is a quarter); AMD's RDNA 3 ISA guide: a SIMD has 32 lanes, executes matrix instructions in the pipe
of the others, and issues one instruction of each type per cycle, from different waves. Latencies
are to the order of magnitude: they decide little where warps overlap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bench.gpu_static.instructions import VECTOR, Instruction, Kind
from polyblocks.target import Multiprocessor, TargetDescription


@dataclass(frozen=True)
class Power:
    """The clock that a chip holds near its limit of power.

    Power goes with the clock times the square of the voltage, which goes with the clock, and with
    what is busy.

    Attributes:
        highest: hertz of a chip that has little to do.
        measured: hertz that were measured near the limit.
        allowed: what was busy then: the part of the cycles in which matrix units are, and
            ``of_issue`` times the part in which instructions are issued.
        of_issue: power of a scheduler that issues, over that of the matrix unit beside it.
    """

    highest: float
    measured: float
    allowed: float
    of_issue: float

    def hertz(self, matrix: float, issue: float) -> float:
        """The clock of code that keeps matrix units and schedulers busy for so much of the time."""
        used = matrix + self.of_issue * issue
        return min(self.highest, self.measured * (self.allowed / used) ** (1 / 3))


@dataclass(frozen=True)
class Machine:
    """A multiprocessor and its share of the chip.

    Attributes:
        chip: limits of the multiprocessor.
        multiprocessors: of the chip.
        hertz: their clock while matrix units work.
        rates: multiply-adds per cycle of a multiprocessor by operands and accumulator, of the
            instructions that a warp drives itself.
        best: the same of the best instructions that the chip has.
        cycles: that the pipe of a kind is busy for an instruction of a warp.
        latencies: cycles from the issue to the result, memory apart.
        shared_rate: bytes per cycle of shared memory.
        cache_rate: bytes per cycle from the cache that all share, per multiprocessor.
        most_cache_rate: the most that one multiprocessor gets when others get less.
        cache_cycles: from a load to its value, out of that cache.
        bandwidth: bytes per second of the main memory.
        launch_seconds: that one more kernel takes, from the end of the one before it.
        one_pipe: matrix instructions run in the pipe of the vector unit's.
        ports: instructions of different kinds are issued in the same cycle.
        power: what its limit of power allows; None if it is unknown.
    """

    chip: Multiprocessor
    multiprocessors: int
    hertz: float
    rates: Mapping[tuple[str, str], float]
    best: Mapping[tuple[str, str], float]
    cycles: Mapping[Kind, float]
    latencies: Mapping[Kind, int]
    shared_rate: float
    cache_rate: float
    most_cache_rate: float
    cache_cycles: float
    bandwidth: float
    launch_seconds: float = 0.0
    one_pipe: bool = False
    ports: bool = False
    power: Power | None = None

    def busy(self, instruction: Instruction) -> float:
        """Cycles that an instruction keeps its pipe of a partition, or the shared memory, busy.

        Raises:
            LookupError: the target's description has no matrix unit of these types.
        """
        if not instruction.active:
            return 0.0
        if instruction.kind is Kind.MATRIX:
            types = instruction.operands, instruction.accumulator
            rates = self.best if instruction.asynchronous else self.rates
            if types not in rates:
                raise LookupError(f"the target has no matrix unit of {types[0]} into {types[1]}")
            return instruction.products * self.chip.partitions / rates[types]
        if instruction.kind in (Kind.SHARED, Kind.COPY):
            # Of the whole multiprocessor: what a warp asks for at once takes a cycle at least.
            return max(instruction.bytes / self.shared_rate, 1.0)
        return self.cycles.get(instruction.kind, 0.0)

    def at(self, hertz: float) -> Machine:
        """The machine at another clock; the caches keep their bytes per second."""
        return replace(self, hertz=hertz, cache_rate=self.cache_rate * self.hertz / hertz)

    @property
    def has_groups(self) -> bool:
        """Whether there are instructions that warps call together, as fast as no others."""
        return self.best != self.rates

    def pipe(self, kind: Kind) -> Kind:
        """The kind that stands for the pipe that executes another one."""
        return Kind.FLOAT if self.one_pipe and kind in (Kind.MATRIX, *VECTOR) else kind


#: Of NVIDIA's partitions with 16 lanes for each kind of arithmetic; the uniform unit takes an
#: instruction every other cycle.
_NARROW = {Kind.FLOAT: 2.0, Kind.INTEGER: 2.0, Kind.SCALAR: 2.0, Kind.SPECIAL: 8.0}
#: Of those with 32 lanes for float32.
_WIDE = {**_NARROW, Kind.FLOAT: 1.0}
_SIMD = {Kind.FLOAT: 1.0, Kind.INTEGER: 1.0, Kind.SCALAR: 1.0, Kind.SPECIAL: 4.0}
#: The first compute capability with 32 lanes for float32; 8.0 has 16 still.
_WIDE_FROM = (8, 6)

#: An H200 of 700 W (2026-11-28): it held 1.635 GHz at 677 W while the fastest of its products did
#: 668 TFLOP/s, and at 685 W while attention with heads of 128 did 579, of 884. An H100 of that form
#: has the same multiprocessors and the same limit; both end at 1.98 GHz.
_HOPPER = Power(1.98e9, 1.635e9, allowed=0.807, of_issue=0.377)
POWER = {"h100": _HOPPER, "h200": _HOPPER}

#: Bytes per cycle between a multiprocessor and the cache that all share.
MOST_CACHE_RATE = 64.0
#: Cycles from a load to its value out of that cache: 279 on an L40 (Basaran and Alpay, "Non-Uniform
#: L2 Cache Latency Across the Streaming Multiprocessors of an NVIDIA L40", 2026).
_NVIDIA_CACHE, _AMD_CACHE = 280, 400
#: Memories that the shared memory of a work-group processor is made of.
_SHARED_UNITS = 2

_NVIDIA_LATENCIES = {Kind.SHARED: 30, Kind.SPECIAL: 20, Kind.SCALAR: 12, Kind.BARRIER: 20}
_AMD_LATENCIES = {
    Kind.SHARED: 64, Kind.FLOAT: 5, Kind.INTEGER: 5, Kind.SPECIAL: 10, Kind.SCALAR: 2,
    Kind.MATRIX: 5, Kind.BARRIER: 20,
}  # fmt: skip


def machine(target: TargetDescription) -> Machine:
    """The machine that a target describes.

    Raises:
        LookupError: the description lacks a rate that the model needs.
    """
    chip, shared = target.multiprocessor, target.memory_level("shared")
    assert chip is not None
    assert shared is not None
    count = target.shared_level.size
    behind = target.memory[target.memory.index(shared) + 1 :]
    near = next((level for level in behind if level.bandwidth), None)
    main = target.memory_level("main")
    if near is None or main is None or not shared.bandwidth:
        raise LookupError(f"the description of {target.arch} has no rates of its memories")
    is_amd = target.name == "amdgpu"
    hertz = _clock(target)
    wide = not is_amd and tuple(target.properties["capability"]) >= _WIDE_FROM
    return Machine(
        chip=chip,
        multiprocessors=count,
        hertz=hertz,
        rates=_rates(target, -1 / count / hertz),
        best=_rates(target, 1 / count / hertz),
        cycles=_SIMD if is_amd else _WIDE if wide else _NARROW,
        latencies=_AMD_LATENCIES if is_amd else _NVIDIA_LATENCIES,
        shared_rate=chip.banks * chip.bank_bytes * (_SHARED_UNITS if is_amd else 1),
        # Caches have clocks of their own: their bytes per second do not follow the units' clock.
        cache_rate=near.gathered * near.bandwidth / count / hertz,
        most_cache_rate=MOST_CACHE_RATE,
        cache_cycles=_AMD_CACHE if is_amd else _NVIDIA_CACHE,
        bandwidth=main.bandwidth,
        launch_seconds=target.shared_level.overhead,
        one_pipe=is_amd,
        ports=is_amd,
        power=POWER.get(target.properties["chip"]),
    )


def _clock(target: TargetDescription) -> float:
    """Of the multiprocessors while matrix units work, from the targets' tables of chips."""
    name = target.properties["chip"]
    if target.name == "amdgpu":
        from polyblocks_amdgpu.chips import CHIPS as amd_chips

        return amd_chips[name].ghz * 1e9
    from polyblocks_nvgpu.chips import CHIPS as nvidia_chips

    return nvidia_chips[name].matrix_ghz * 1e9


def _rates(target: TargetDescription, scale: float) -> dict[tuple[str, str], float]:
    """Multiply-adds by types: of the fastest instruction, or, of a negative scale, the slowest.

    A warp drives the slowest one of a pair of types itself.
    """
    units = sorted(target.matrix_units, key=lambda unit: unit.flops * scale)
    return {(u.operands, u.accumulator): u.flops / 2 * abs(scale) for u in units}
