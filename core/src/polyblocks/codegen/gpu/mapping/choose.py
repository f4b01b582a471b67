"""How many threads work on one outer iteration: the smallest predicted time of a few choices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

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
    Nest,
    Node,
    walk,
)
from polyblocks.affine.tiles.contiguity import written_out
from polyblocks.codegen.gpu.mapping.atomics import form_atomics
from polyblocks.codegen.gpu.mapping.banks import pitch_rows
from polyblocks.codegen.gpu.mapping.barriers import place_barriers, waits
from polyblocks.codegen.gpu.mapping.block_inputs import BYTES, same_for_all
from polyblocks.codegen.gpu.mapping.contraction import TiledKernel, tiled_kernels
from polyblocks.codegen.gpu.mapping.contraction_cost import predict_contraction
from polyblocks.codegen.gpu.mapping.distribution import (
    ThreadDistribution,
    fastest_last,
    has_loops,
    outer_loops,
)
from polyblocks.codegen.gpu.mapping.kernel import DistributedLoop, Kernel, Place
from polyblocks.codegen.gpu.mapping.placement import place_buffers
from polyblocks.codegen.gpu.mapping.predicted import CACHE_RATE, Predicted
from polyblocks.codegen.gpu.mapping.registers import live_registers, registers, resident_blocks
from polyblocks.codegen.gpu.mapping.wide import widest
from polyblocks.errors import UnsupportedError
from polyblocks.target import Multiprocessor, TargetDescription

#: Threads of a block, where nothing speaks for another number.
THREADS = 256
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
#: Bytes of shared memory that the joins of reductions take, at most.
SCRATCH = 4096
#: What unused parts of transactions add to the time that threads wait.
CROWD = 0.25
#: Bytes of the main memory's caches that a byte of shared memory stands for.
WORKGROUP = 0.25
#: The same of a byte that a multiprocessor keeps near, as long as others do not push it out.
STREAMED = 0.5


def choose(nest: Nest, target: TargetDescription) -> tuple[Kernel, Predicted]:
    """The kernel of a nest.

    Raises:
        ValueError: the target has no grids.
        UnsupportedError: it takes more blocks than a grid may have.
    """
    chip = target.multiprocessor
    if chip is None:
        raise ValueError(f"the target '{target.name}' has no grids of blocks: it maps to a team")
    form_atomics(nest.body)
    outer, body = outer_loops(nest.body)
    kernels = _Kernels(nest, outer, body, chip)
    found: list[tuple[tuple[bool, float], Kernel, Predicted]] = []
    for group, groups, strided, copies in _choices(chip, has_loops(body)):
        kernel = kernels.of(group, groups, strided)
        if group > 1 and not kernel.distributed:
            continue
        if copies:
            kernel.copied = same_for_all(kernel) if kernel.groups == groups else []
            if not kernel.copied or sum(b.nbytes for b in kernel.copied) > BYTES:
                continue
        else:
            _shrink(kernel, target.shared_level.size)
        if kernel.shared_bytes() + SCRATCH > chip.shared_per_block_optin:
            continue
        predicted = _predict(kernel, target, chip)
        # Private memory that is no register is worse than anything the model knows of.
        scratch = registers(kernel) > chip.registers_per_thread
        found.append(((scratch, predicted.seconds), kernel, predicted))
    for tiled in tiled_kernels(nest, outer, body, chip.warp, chip.banks, chip.threads_per_block):
        if tiled.shared_bytes() <= chip.shared_per_block:
            predicted = predict_contraction(tiled, target, chip)
            found.append(((False, predicted.seconds), tiled, predicted))
    # Ties go to the simpler one, which comes first.
    _, kernel, predicted = min(found, key=lambda entry: entry[0])
    if not isinstance(kernel, TiledKernel):
        _widen(kernel, target, chip)
        _fit_grid(kernel, chip)
        place_barriers(kernel)
    if kernel.blocks > chip.grid_limits[0]:
        raise UnsupportedError(
            f"it would take {kernel.blocks} blocks of {kernel.threads} threads, where a grid of "
            f"the target '{target.name}' has at most {chip.grid_limits[0]}; compute parts of the "
            "arrays one after the other"
        )
    return kernel, predicted


def _fit_grid(kernel: Kernel, chip: Multiprocessor) -> None:
    """Larger blocks where there would be too many; only of threads that work by themselves."""
    while kernel.blocks > chip.grid_limits[0] and kernel.group == 1 and not kernel.distributed:
        if 2 * kernel.threads > chip.threads_per_block:
            return
        kernel.groups *= 2


def _widen(kernel: Kernel, target: TargetDescription, chip: Multiprocessor) -> None:
    """Let threads do several iterations at once, where as many threads are left as keep busy."""
    width = widest(kernel, chip)
    threads = kernel.iterations // width
    if width > 1 and threads >= target.shared_level.size * chip.threads:
        kernel.width = width


def _choices(chip: Multiprocessor, loops: bool) -> Iterator[tuple[int, int, bool, bool]]:
    """Threads of a group, groups of a block, and whether a group's threads are apart.

    And whether a block begins with copies of what all of its groups read.
    """
    yield 1, THREADS, False, False
    if not loops:
        return
    group = chip.warp
    while group <= min(chip.threads_per_block, 1024):
        yield group, max(1, THREADS // group), False, False
        groups = 2
        while group * groups <= chip.threads_per_block:
            yield group, groups, False, True
            groups *= 2
        group *= 2
    group = 4
    while group * chip.warp <= min(chip.threads_per_block, 1024):
        yield group, chip.warp, True, False
        group *= 2


class _Kernels:
    """Ways to run one nest; what they have in common is found out once."""

    def __init__(
        self, nest: Nest, outer: list[For], body: list[Node], chip: Multiprocessor
    ) -> None:
        self.nest, self.outer, self.body, self.chip = nest, outer, body, chip
        self._variables = [loop.var for loop in outer]
        # Neighbouring threads work on neighbouring outer iterations.
        self._by_threads = fastest_last(self._variables, body)
        self._sharing = ThreadDistribution(body)
        self._live = live_registers(body)

    def of(self, group: int, groups: int, strided: bool) -> Kernel:
        """The kernel with groups of so many threads, and so many groups in a block."""
        order = self._by_threads if group == 1 or strided else self._variables
        kernel = Kernel(self.nest, self.outer, list(order), self.body, group, groups, strided)
        kernel.warp, kernel.live = self.chip.warp, self._live
        kernel.distributed = self._sharing.of(group, scans=not strided)
        if group > 1 and _differs(kernel):
            kernel.groups, kernel.strided = 1, False
        place_buffers(kernel, self.chip)
        pitch_rows(kernel, self.chip.sector)
        return kernel


def _differs(kernel: Kernel) -> bool:
    """Whether groups may do different things, so that they cannot wait for each other."""
    return any(
        isinstance(n, For) and n not in kernel.distributed and n.bounded for n in kernel.uniform()
    )


def _shrink(kernel: Kernel, units: int) -> None:
    """Smaller blocks, as long as there are too few for all multiprocessors."""
    least = kernel.warp if kernel.group == 1 or kernel.strided else 1
    while kernel.groups > least and kernel.blocks < 2 * units:
        kernel.groups //= 2


def _predict(kernel: Kernel, target: TargetDescription, chip: Multiprocessor) -> Predicted:
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


def loops_of(kernel: Kernel) -> int:
    """Loops that the threads of a group share."""
    return sum(1 for n in walk(kernel.body) if isinstance(n, For) and n in kernel.distributed)
