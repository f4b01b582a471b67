"""What a kernel takes whose groups of threads do iterations of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from polyblocks.affine import operation_cost as cost
from polyblocks.affine.access import stride_along
from polyblocks.affine.expr import Var
from polyblocks.affine.model import (
    Access,
    Buffer,
    For,
    IndirectLoad,
    IndirectStore,
    Load,
    Node,
)
from polyblocks.affine.tiles.contiguity import written_out
from polyblocks.codegen.gpu.mapping.barriers import waits
from polyblocks.codegen.gpu.mapping.kernel import DistributedLoop, Kernel, Place
from polyblocks.codegen.gpu.mapping.registers import resident_blocks
from polyblocks.target import Multiprocessor, TargetDescription

#: Seconds of one iteration of a loop whose loads wait for memory, several of them in flight.
STEP = 60e-9
#: Seconds of a barrier, and of combining the values of the threads of a warp.
BARRIER = 20e-9
JOIN = 60e-9
#: Seconds of a load from shared memory, several of them in flight.
LOOK = 4e-9
#: Seconds that the operations of an iteration take where nothing is loaded.
ISSUE = 1e-9
#: Loads of main memory that a thread waits for together.
IN_FLIGHT = 4
#: Threads of a multiprocessor that keep its units busy.
BUSY = 512
#: Bytes of a buffer that every multiprocessor keeps near, if it is read again and again.
NEAR = 32 << 10
#: What unused parts of transactions add to the time that threads wait.
CROWD = 0.25
#: Bytes of the main memory's caches that a byte of shared memory stands for.
WORKGROUP = 0.25
#: The same of a byte that a multiprocessor keeps near, as long as others do not push it out.
STREAMED = 0.5
#: The rate of the last cache over that of the main memory, where it is not known.
CACHE_RATE = 2.5


@dataclass(frozen=True)
class Predicted:
    """Seconds that a choice takes, and where they come from; they overlap."""

    memory: float
    compute: float
    latency: float

    @property
    def seconds(self) -> float:
        """The bottleneck's time, and a part of the others'."""
        parts = (self.memory, self.compute, self.latency)
        return max(parts) + 0.2 * (sum(parts) - max(parts))

    def to_json(self) -> dict[str, float]:
        """The numbers by the names that a schedule and a decision give them."""
        return {
            "predicted_seconds": self.seconds,
            "memory_seconds": self.memory,
            "compute_seconds": self.compute,
            "latency_seconds": self.latency,
        }


def predict_kernel(kernel: Kernel, target: TargetDescription, chip: Multiprocessor) -> Predicted:
    """Seconds of a kernel whose groups each do outer iterations of their own."""
    units = max(target.shared_level.size, 1)
    main = target.memory[-1].bandwidth or 1e12
    threads = kernel.blocks * kernel.threads
    busy = min(1.0, threads / (units * BUSY))
    work = cost.compute_seconds(target, cost.work(kernel.nest.body))
    moved, useful = (sum(_traffic(kernel, c)) for c in (chip, _ideal(chip)))
    resident = resident_blocks(kernel, chip, units)
    # Transactions of which a part is used are in the way of others.
    crowd = 1 + CROWD * (moved / useful - 1) if useful else 1.0
    waves = max(1.0, kernel.blocks / (units * resident))
    return Predicted(
        memory=moved / (CACHE_RATE * main) / busy,
        compute=work / busy * _idle(kernel),
        latency=waves * _steps(kernel.body, kernel, False) * crowd,
    )


def _ideal(chip: Multiprocessor) -> Multiprocessor:
    """The chip, if it moved single bytes."""
    return replace(chip, sector=1)


def _idle(kernel: Kernel) -> float:
    """Threads for every thread that has work, in the loops that a group shares."""
    if kernel.group == 1 or not kernel.distributed:
        return 1.0
    slots = sum(-(-s.trips // kernel.group) * kernel.group for s in kernel.distributed.values())
    return slots / sum(max(s.trips, 1) for s in kernel.distributed.values())


def _steps(nodes: list[Node], kernel: Kernel, inside: bool) -> float:
    """Seconds that one thread waits, all iterations together."""
    seconds = 0.0
    for node in nodes:
        if not isinstance(node, For):
            continue
        distributed = None if inside else kernel.distributed.get(node)
        if distributed is not None:
            turns = -(-distributed.trips // kernel.group)
            seconds += _waits_for_loads(distributed, turns, kernel)
            seconds += turns * _steps(distributed.body, kernel, True)
            if distributed.scan:
                seconds += turns * JOIN
                if waits(kernel):
                    # Every thread looks at what all warps have come to.
                    seconds += turns * (2 * BARRIER + kernel.group / kernel.warp * LOOK)
            elif distributed.combiners:
                seconds += JOIN + (JOIN + BARRIER if waits(kernel) else 0)
            else:
                seconds += BARRIER
        else:
            seconds += node.trips * (STEP + _steps(node.body, kernel, inside))
    return seconds


def _waits_for_loads(distributed: DistributedLoop, turns: int, kernel: Kernel) -> float:
    """Seconds that a thread waits for what its iterations of a distributed loop load themselves."""
    loads = [n for n in distributed.body if isinstance(n, (Load, IndirectLoad))]
    if any(n.buffer not in kernel.places and n.buffer not in kernel.copied for n in loads):
        # Without a loop around them, loads do not wait for each other.
        together = IN_FLIGHT if turns <= written_out([len(distributed.body)]) else 1
        return -(-turns // together) * STEP
    own = all(kernel.places.get(n.buffer) is Place.DISTRIBUTED_REGISTERS for n in loads)
    return turns * (ISSUE if own else LOOK)


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
        elif isinstance(node, Access):
            if node.buffer in kernel.copied:
                yield times * WORKGROUP * node.buffer.bytes_per_element
            elif node.buffer in kernel.places:
                yield times * _held(node.buffer, kernel)
            elif kernel.group > 1 and not inside and not kernel.strided:
                # One address for every warp of the group.
                yield times * chip.sector * -(-kernel.group // kernel.warp)
            elif _near(node, kernel):
                yield times * STREAMED * node.buffer.bytes_per_element
            else:
                yield times * _part(node, var, chip)


def _held(buffer: Buffer, kernel: Kernel) -> float:
    """Bytes of the main memory's caches that an access of a local buffer stands for."""
    if kernel.places[buffer] is Place.DISTRIBUTED_REGISTERS:
        return 0.0
    if kernel.places[buffer] is Place.SHARED:
        return WORKGROUP * buffer.bytes_per_element
    return buffer.bytes_per_element if buffer.numel > 16 else 0.0


def _near(node: Access, kernel: Kernel) -> bool:
    """Whether all outer iterations touch the same elements, which stay near."""
    if not isinstance(node, Load) or node.buffer.nbytes > NEAR:
        return False
    return not any(v in kernel.order for e in node.index for v in e.variables())


def _part(node: Access, var: Var | None, chip: Multiprocessor) -> float:
    """Bytes moved for one thread's access, whose neighbours move along ``var``."""
    size = node.buffer.bytes_per_element
    sector = max(chip.sector, size)
    if isinstance(node, (IndirectLoad, IndirectStore)):
        return float(min(sector, 2 * size))
    stride = None if var is None else stride_along(node.buffer, node.index, var)
    if stride is None:
        return float(sector)
    if stride == 0:
        return sector / chip.warp
    return float(min(sector, abs(stride) * size))
