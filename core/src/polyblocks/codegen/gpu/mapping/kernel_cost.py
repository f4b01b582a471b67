"""Cost of kernels whose groups of threads do iterations of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf

from polyblocks.affine import operation_cost as cost
from polyblocks.affine.access import stride_along
from polyblocks.affine.cost import rates
from polyblocks.affine.expr import Var
from polyblocks.affine.model import Access, AffineAccess, AnyLoad, Buffer, For, Load, Node
from polyblocks.affine.tiles.contiguity import written_out
from polyblocks.codegen.gpu.mapping.barriers import waits
from polyblocks.codegen.gpu.mapping.kernel import DistributedLoop, Kernel, Place
from polyblocks.codegen.gpu.mapping.registers import resident_blocks
from polyblocks.target import Multiprocessor, TargetDescription

#: Latency added by unused bytes of transactions, relative to the used ones.
CROWD = 0.25
#: Bytes of the main memory's caches that a byte of shared memory stands for.
CACHE_BYTES_PER_SHARED_BYTE = 0.25
#: The same of a byte that a multiprocessor keeps near, as long as others do not push it out.
STREAMED = 0.5
#: Bytes that accesses ask for, for each one that the main memory moves: caches have the others.
ACCESSED_PER_MOVED = 2.5


@dataclass(frozen=True)
class Predicted:
    """Seconds that a choice takes, and where they come from; they overlap.

    Attributes:
        memory: of the memory behind the multiprocessors.
        compute: of the vector units and what feeds them.
        latency: of waiting.

    None is unknown: the target's description lacks a rate, see
    :func:`polyblocks.affine.cost.rates.unknown_rates`.
    """

    memory: float | None
    compute: float | None
    latency: float | None

    @property
    def seconds(self) -> float:
        """The key of comparisons: the bottleneck's time plus a part of all other times.

        Unknown times count as zero; the prediction is from :meth:`numbers`.
        """
        parts = [s for s in (self.memory, self.compute, self.latency) if s is not None]
        return rates.overlapped(*parts) if parts else 0.0

    def numbers(self) -> dict[str, float | None]:
        """The prediction and its parts, for decisions and reports; None for what is unknown."""
        parts = {
            "memory_seconds": self.memory,
            "compute_seconds": self.compute,
            "latency_seconds": self.latency,
        }
        return {"predicted_seconds": None if None in parts.values() else self.seconds, **parts}


#: Of what cannot run at all.
IMPOSSIBLE = Predicted(inf, inf, inf)


def predict_kernel(kernel: Kernel, target: TargetDescription, chip: Multiprocessor) -> Predicted:
    """Seconds of a kernel whose groups each do outer iterations of their own."""
    units = max(target.shared_level.size, 1)
    threads = kernel.blocks * kernel.threads
    needed = units * (chip.busy_threads or chip.threads)
    busy = min(1.0, threads / needed)
    # A wide access has as much on its way as several narrow ones.
    width = max((loop.width for loop in kernel.distributed.values()), default=1)
    full = min(1.0, threads * width / needed)
    main = rates.main_bandwidth(target, units)
    work = rates.compute_seconds(target, cost.work(kernel.nest.body))
    moved, useful = (sum(_traffic(kernel, c)) for c in (chip, _ideal(chip)))
    resident = resident_blocks(kernel, chip, units)
    # Partly used transactions delay others.
    crowd = 1 + CROWD * (moved / useful - 1) if useful else 1.0
    waves = max(1.0, kernel.blocks / (units * resident))
    return Predicted(
        memory=None if main is None else moved / (ACCESSED_PER_MOVED * main) / full,
        compute=None if work is None else work / busy * _idle(kernel),
        latency=waves * _steps(kernel.body, kernel, chip, False) * crowd
        if chip.latencies.known
        else None,
    )


def _ideal(chip: Multiprocessor) -> Multiprocessor:
    """The chip, if it moved single bytes."""
    return replace(chip, sector=1)


def _idle(kernel: Kernel) -> float:
    """Threads for every thread that has work, in the loops that a group shares."""
    if kernel.group == 1 or not kernel.distributed:
        return 1.0
    loops = kernel.distributed.values()
    slots = sum(kernel.iterations_per_thread(s) * kernel.group for s in loops)
    return slots / sum(max(s.trips, 1) for s in loops)


def _steps(nodes: list[Node], kernel: Kernel, chip: Multiprocessor, inside: bool) -> float:
    """Seconds that one thread waits, all iterations together."""
    takes = chip.latencies
    seconds = 0.0
    for node in nodes:
        if not isinstance(node, For):
            continue
        distributed = None if inside else kernel.distributed.get(node)
        if distributed is not None:
            per_thread = kernel.iterations_per_thread(distributed)
            seconds += _waits_for_loads(distributed, per_thread, kernel, chip)
            seconds += per_thread * _steps(distributed.body, kernel, chip, True)
            if distributed.scan:
                seconds += per_thread * takes.warp_reduce
                if waits(kernel):
                    # Every thread looks at what all warps have come to.
                    look = kernel.group / kernel.warp * takes.shared_load
                    seconds += per_thread * (2 * takes.barrier + look)
            elif distributed.combiners:
                across = takes.warp_reduce + takes.barrier if waits(kernel) else 0
                seconds += takes.warp_reduce + across
            else:
                seconds += takes.barrier
        else:
            seconds += node.trips * (takes.load_step + _steps(node.body, kernel, chip, inside))
    return seconds


def _waits_for_loads(
    distributed: DistributedLoop, per_thread: int, kernel: Kernel, chip: Multiprocessor
) -> float:
    """Seconds that a thread waits for what its iterations of a distributed loop load themselves."""
    loads = [n for n in distributed.body if isinstance(n, AnyLoad)]
    if any(n.buffer not in kernel.places and n.buffer not in kernel.copied for n in loads):
        # Without a loop around them, loads do not wait for each other.
        together = chip.loads_in_flight if per_thread <= written_out([len(distributed.body)]) else 1
        return -(-per_thread // (together * distributed.width)) * chip.latencies.load_step
    own = all(kernel.places.get(n.buffer) is Place.DISTRIBUTED_REGISTERS for n in loads)
    return per_thread * (chip.latencies.issue if own else chip.latencies.shared_load)


def _traffic(kernel: Kernel, chip: Multiprocessor) -> Iterator[float]:
    """Bytes that each access moves, the unused parts of transactions included."""
    outer = kernel.order[-1] if kernel.order else None
    yield from _moved(kernel.body, kernel, chip, outer, float(kernel.iterations), False)
    for buffer in kernel.copied:
        yield float(kernel.blocks * buffer.nbytes)


def _moved(
    nodes: list[Node],
    kernel: Kernel,
    chip: Multiprocessor,
    var: Var | None,
    times: float,
    inside: bool,
) -> Iterator[float]:
    for node in nodes:
        if isinstance(node, For):
            distributed = None if inside else kernel.distributed.get(node)
            if distributed is None:
                yield from _moved(node.body, kernel, chip, var, times * max(node.trips, 1), inside)
                continue
            fastest = var if kernel.strided else distributed.order[-1]
            count = times
            for loop in distributed.loops:
                count *= max(loop.trips, 1)
            yield from _moved(distributed.body, kernel, chip, fastest, count, True)
        elif isinstance(node, Access) and not node.atomic:
            # How long atomic updates take is not predicted.
            if node.buffer in kernel.copied:
                yield times * CACHE_BYTES_PER_SHARED_BYTE * node.buffer.bytes_per_element
            elif node.buffer in kernel.places:
                yield times * _held(node.buffer, kernel)
            elif kernel.group > 1 and not inside and not kernel.strided:
                # One address for every warp of the group.
                yield times * chip.sector * -(-kernel.group // kernel.warp)
            elif _near(node, kernel, chip):
                yield times * STREAMED * node.buffer.bytes_per_element
            else:
                yield times * _part(node, var, chip)


def _held(buffer: Buffer, kernel: Kernel) -> float:
    """Bytes of the main memory's caches that an access of a local buffer stands for."""
    if kernel.places[buffer] is Place.DISTRIBUTED_REGISTERS:
        return 0.0
    if kernel.places[buffer] is Place.SHARED:
        return CACHE_BYTES_PER_SHARED_BYTE * buffer.bytes_per_element
    return buffer.bytes_per_element if buffer.numel > 16 else 0.0


def _near(node: Access, kernel: Kernel, chip: Multiprocessor) -> bool:
    """Whether all outer iterations touch the same elements, which stay near."""
    if not isinstance(node, Load) or node.buffer.nbytes > chip.cache:
        return False
    return not any(v in kernel.order for e in node.index for v in e.variables())


def _part(node: Access, var: Var | None, chip: Multiprocessor) -> float:
    """Bytes moved for one thread's access, whose neighbours move along ``var``."""
    size = node.buffer.bytes_per_element
    sector = max(chip.sector, size)
    if not isinstance(node, AffineAccess):
        return float(min(sector, 2 * size))
    stride = None if var is None else stride_along(node.buffer, node.index, var)
    if stride is None:
        return float(sector)
    if stride == 0:
        return sector / chip.warp
    return float(min(sector, abs(stride) * size))
