"""Seconds of work on a target, from the rates in its description.

A rate that the description does not have is unknown, and so is the time of what needs it: None.
"""

from __future__ import annotations

from dataclasses import asdict
from functools import lru_cache
from math import exp, isinf

from polyblocks.affine.cost.constants import BEYOND_CACHE, CACHE_SHARE, LARGE_OUTPUT, NOT_HIDDEN
from polyblocks.affine.model import Buffer
from polyblocks.target import MemoryLevel, TargetDescription

#: Trips to memory from the last store of a phase to the first load of the next one: until all
#: stores are seen, until a block is counted, and until another one sees that.
_TRIPS = 3


def unknown_rates(target: TargetDescription) -> tuple[str, ...]:
    """Rates that predictions need and a target's description lacks.

    Passes that weigh times against each other take their default where there is something: work
    is shared among all threads, and nothing is computed, moved or stored more often for speed.

    Returns:
        Names: ``flops of float32``, ``bandwidth of the main memory``, ``latency 'barrier'``, ….
    """
    missing = []
    if lane_rate(target) is None:
        missing.append("flops of float32")
    if main_bandwidth(target, 1) is None:
        missing.append("bandwidth of the main memory")
    if target.multiprocessor is not None:
        latencies = asdict(target.multiprocessor.latencies)
        missing += [f"latency '{name}'" for name, seconds in latencies.items() if not seconds]
    return tuple(missing)


def unknown_caches(target: TargetDescription) -> tuple[str, ...]:
    """Names of the memory levels before the last whose bandwidth is not described."""
    return tuple(level.name for level in target.memory[:-1] if not level.bandwidth)


def lane_rate(target: TargetDescription) -> float | None:
    """Single-precision instructions per second, of all lanes of the chip.

    A fused multiply-add counts as two operations in the peak and as one here.
    """
    return target.flops.get("float32", 0.0) / 2 or None


def bandwidth(target: TargetDescription, level: MemoryLevel, threads: int) -> float | None:
    """Bytes per second of ``threads`` threads from a memory level, all of its instances.

    A cache of unknown bandwidth gives no less than the nearest level behind it whose is known.
    """
    for at in target.memory[target.memory.index(level) :]:
        if at.bandwidth:
            return at.bandwidth * max(1, threads // max(at.shared_by, 1))
    return None


def main_bandwidth(target: TargetDescription, threads: int) -> float | None:
    """As :func:`bandwidth`, of the main memory."""
    return bandwidth(target, target.memory[-1], threads) if target.memory else None


def compute_seconds(target: TargetDescription, operations: float) -> float | None:
    """Time of ``operations`` vectorized single-precision operations on the whole chip."""
    rate = lane_rate(target)
    return None if rate is None else operations / rate


def traffic_seconds(target: TargetDescription, nbytes: float, footprint: int) -> float | None:
    """Time to move ``nbytes`` of a buffer of ``footprint`` bytes from where it is found."""
    levels = target.memory[found_in(target, footprint) :]
    rate = next((level.bandwidth for level in levels if level.bandwidth), None)
    return None if rate is None else nbytes / rate


def private_cache(target: TargetDescription) -> int:
    """Bytes of the largest cache that a core has for itself; 0 if none is described."""
    return max((m.size for m in target.memory if m.size and m.shared_by == 1), default=0)


def last_cache_keeps(target: TargetDescription, touched: int) -> bool:
    """Whether the last cache still has most of as many bytes when a program runs again."""
    last = next((level for level in reversed(target.memory) if level.size), None)
    return last is not None and touched <= BEYOND_CACHE * last.size


def found_in(target: TargetDescription, nbytes: int, program: int = 0) -> int:
    """Index of the memory level where data is found when a program runs again.

    Args:
        target: the chip.
        nbytes: of the data that is used together.
        program: bytes of all that the program touches: the last cache may keep most of them. 0: it
            keeps nothing beyond its share. Predictions count what it keeps: :func:`kept_share`.
    """
    for k, level in enumerate(target.memory):
        if level.size and nbytes <= level.size // CACHE_SHARE:
            return k
    main = max(len(target.memory) - 1, 0)
    return main - 1 if main and program and last_cache_keeps(target, program) else main


def kept_share(target: TargetDescription, touched: int) -> float:
    """The part of ``touched`` bytes that the last cache still has when a program runs again.

    Its sets get pages at random (Kessler and Hill, "Page Placement Algorithms for Large
    Real-Indexed Caches", 1992), so that some have too many before it is full, and its replacement
    keeps what fits of data that returns in turn (Qureshi and others, "Adaptive Insertion Policies
    for High Performance Caching", 2007). Sums of 24, 32, 40, 48, 64, 96 and 128 MiB by two cores of
    a Zen 4 that share 32 MiB found .96, .88, .80, .67, .51, .33 and .26 of them there, by their
    rates; this says .98, .90, .78, .66, .50, .33 and .25. Of a virtual machine whose two cores are
    sometimes placed at two caches it is the share when they are not.
    """
    last = next((level for level in reversed(target.memory) if level.size), None)
    return 0.0 if last is None else _kept_share(touched / last.size, last.associativity)


@lru_cache(maxsize=256)
def _kept_share(filled: float, ways: int) -> float:
    """Of lines whose number in a set is Poisson distributed, those among the first ``ways``."""
    if not filled or not ways:
        return min(1.0, 1 / filled) if filled else 1.0
    mean = filled * ways
    probability, below, kept = exp(-mean), 0.0, 0.0
    for lines in range(ways):
        below += probability
        kept += lines * probability
        probability *= mean / (lines + 1)
    return min(1.0, (kept + ways * (1 - below)) / mean)


def returning_rate(target: TargetDescription, touched: int, threads: int) -> float | None:
    """Bytes per second of ``threads`` threads, of data that a program touches at each run.

    Args:
        target: the chip.
        touched: bytes of all that the program touches.
        threads: that move it.
    """
    if not target.memory:
        return None
    home = found_in(target, touched)
    rate = bandwidth(target, target.memory[home], threads)
    if rate is None or home < len(target.memory) - 1 or len(target.memory) == 1:
        return rate
    kept = kept_share(target, touched)
    cached = bandwidth(target, target.memory[-2], threads)
    return 1 / ((1 - kept) / rate + kept / cached) if cached else rate


def passes_caches(
    target: TargetDescription, buffer: Buffer, touched: int, walks: bool = False
) -> bool:
    """Whether stores to a buffer that nothing reads again pass the caches.

    A nest that touches more than its share of the last cache finds little there when it runs
    again, and leaves little for what reads its outputs; but small outputs are better left there.

    Args:
        target: the chip.
        buffer: that is stored to.
        touched: bytes of all buffers that the nest touches.
        walks: whether it walks along what it reads and writes, and so neither needs the caches for
            what it reads again nor waits for lines that it writes to.
    """
    last = next((level for level in reversed(target.memory) if level.size), None)
    if last is None or buffer.kind != "output" or buffer.nbytes <= LARGE_OUTPUT * last.size:
        return False
    return not last_cache_keeps(target, touched) if walks else touched > last.size // CACHE_SHARE


def overlapped(*seconds: float) -> float:
    """Bottleneck time plus a part of all other times."""
    longest = max(seconds)
    return longest if isinf(longest) else longest + NOT_HIDDEN * (sum(seconds) - longest)


def waiting_seconds(target: TargetDescription, phases: int) -> float | None:
    """Seconds that blocks of a launch wait for others, in all of its phases but the first.

    None if that is not known. See :mod:`polyblocks.codegen.gpu.phases`.
    """
    chip = target.multiprocessor
    if chip is None or not chip.latencies.known:
        return None
    # The number of a block is one trip more.
    return (_TRIPS * (phases - 1) + 1) * chip.latencies.memory if phases > 1 else 0.0
