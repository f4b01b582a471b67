"""What a kernel of matrix units takes: the unit, shared memory, the caches behind, and waiting."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, prod

from polyblocks.affine.cost import rates
from polyblocks.affine.model import Load, Store
from polyblocks.codegen.gpu.mapping.kernel_cost import IMPOSSIBLE, Predicted
from polyblocks.codegen.gpu.mapping.registers import registers
from polyblocks.codegen.gpu.matrix.kernel import MatrixKernel
from polyblocks.occupancy import occupancy
from polyblocks.target import Multiprocessor, TargetDescription


def predict_matrix(
    kernel: MatrixKernel, target: TargetDescription, chip: Multiprocessor
) -> Predicted:
    """Seconds of a kernel of matrix units.

    Blocks run in waves, of which the last one may leave multiprocessors idle, or with fewer blocks
    than they could hold. While one block begins or ends, the others that are held go on.
    """
    units = max(target.shared_level.size, 1)
    needed = registers(kernel)
    if needed > chip.registers_per_thread:
        return IMPOSSIBLE
    resident = occupancy(chip, needed, kernel.shared_bytes(), kernel.threads).blocks
    if resident < 1:
        return IMPOSSIBLE
    depth = kernel.tile[2]
    blocks, steps = kernel.blocks, ceil(kernel.counts[2] / depth)
    on_chip, cache = _rates(target)
    of_tile = depth * kernel.copied_bytes
    after = _bytes_after(kernel)
    at_once = min(resident, ceil(blocks / units))
    waves, rest = divmod(blocks, units * at_once)
    compute = latency = None
    if on_chip is not None and kernel.unit.flops:
        given = kernel, target, chip, on_chip
        compute = steps * waves * _seconds_of_tile(*given, at_once)
        if rest:
            compute += steps * _seconds_of_tile(*given, ceil(rest / units))
    if chip.latencies.known:
        # Until the first operands are there, and until the results are stored.
        ends = 2 * chip.latencies.memory
        if cache is not None:
            ends += units * at_once * (of_tile + after) / cache
        latency = ends * (1 + (waves + (rest > 0) - 1) / at_once)
    return Predicted(
        # What blocks share comes from the first cache behind them whose rate is known.
        memory=None if cache is None else blocks * (steps * of_tile + after) / cache,
        # Of waves, the first one's beginning and the last one's end have nothing beside them.
        compute=None if compute is None else compute + (latency or 0.0),
        latency=latency,
    )


def least_matrix(
    target: TargetDescription, chip: Multiprocessor
) -> Callable[[MatrixKernel], float]:
    """Gives seconds that :func:`predict_matrix` exceeds or meets, without asking for registers.

    What takes the units, shared memory and the cache behind, and blocks of which as many are held
    as shared memory and threads allow; 0 for what is unknown.
    """
    units = max(target.shared_level.size, 1)
    on_chip, cache = _rates(target)
    takes, partitions = chip.latencies, chip.warp * chip.partitions
    ends = 2 * takes.memory if takes.known else 0.0

    def least(kernel: MatrixKernel) -> float:
        depth = kernel.tile[2]
        blocks, threads, steps = kernel.blocks, kernel.threads, ceil(kernel.counts[2] / depth)
        compute = memory = 0.0
        if on_chip is not None and kernel.unit.flops:
            matrix = _unit_seconds_of_tile(kernel, units)
            of_shared = _shared_bytes_of_tile(kernel) * units / on_chip
            of_each = ceil(blocks / units)
            held = min(chip.shared // kernel.shared_bytes(), chip.threads // threads)
            alone = matrix / min(1.0, threads / partitions) + 2 * takes.exchange
            waits = ceil(of_each / max(held, 1)) * max(alone, takes.memory / (kernel.stages - 1))
            compute = steps * max(of_each * rates.overlapped(matrix, of_shared), waits) + ends
        if cache is not None:
            memory = blocks * steps * depth * kernel.copied_bytes / cache
        return rates.overlapped(memory, compute, ends)

    return least


def _shared_bytes_of_tile(kernel: MatrixKernel) -> float:
    """Bytes of shared memory that a block's warps write and read of a tile of both operands.

    For each slice a warp reads a row of chunks for each of its rows, and one for each of its
    columns; tiles are written to shared memory once more than they come from the caches.
    """
    rows, columns, depth = kernel.tile
    (m, n, _), (i, j) = kernel.unit.shape, kernel.of_warp
    products = rows * columns * depth
    read = products / (m * i) + products / (n * j)
    return (read + depth * (rows + columns)) * kernel.element_bytes


def _unit_seconds_of_tile(kernel: MatrixKernel, units: int) -> float:
    """Seconds in which the units of one of so many multiprocessors compute a block's tile."""
    return 2.0 * prod(kernel.tile) * units / kernel.unit.flops


def _rates(target: TargetDescription) -> tuple[float | None, float | None]:
    """Bytes per second of shared memory, and of the first cache behind it that is known."""
    units = max(target.shared_level.size, 1)
    shared = target.memory_level("shared")
    if shared is None:
        return None, None
    behind = target.memory[target.memory.index(shared) + 1 :]
    near = next((level for level in behind if level.bandwidth), None)
    cache = None if near is None else rates.bandwidth(target, near, units)
    return rates.bandwidth(target, shared, units), cache


def _bytes_after(kernel: MatrixKernel) -> int:
    """Bytes of a block's elements that are loaded and stored around the sums, about."""
    parts = kernel.parts
    touched = [n for n in (*parts.before, *parts.after) if isinstance(n, (Load, Store))]
    rows, columns, _ = kernel.tile
    return sum(n.buffer.bytes_per_element for n in touched) * rows * columns


def _seconds_of_tile(
    kernel: MatrixKernel,
    target: TargetDescription,
    chip: Multiprocessor,
    on_chip: float,
    blocks: int,
) -> float:
    """Seconds in which so many blocks of a multiprocessor each go on by a tile of steps.

    What threads do beside the unit takes slots in which instructions start. A warp for each
    partition keeps its unit busy; a block alone waits for what its warps exchange, and all for
    tiles that are on their way while the others in shared memory are used.
    """
    units = max(target.shared_level.size, 1)
    matrix = _unit_seconds_of_tile(kernel, units)
    of_shared = _shared_bytes_of_tile(kernel) * units / on_chip
    of_thread = kernel.reading + sum(kernel.copying(o) for o in kernel.product.operands)
    issued = rates.compute_seconds(target, kernel.threads * of_thread * units) or 0.0
    takes, warps = chip.latencies, kernel.threads / chip.warp
    used = min(1.0, blocks * warps / chip.partitions)
    alone = matrix / min(1.0, warps / chip.partitions)
    busy = rates.overlapped(blocks * matrix / used, blocks * of_shared, blocks * issued)
    # Copies past the registers are started all along a tile.
    comes = takes.memory / (1 if kernel.copies_through_registers else kernel.stages - 1.5)
    exchange = takes.exchange + (takes.memory if kernel.has_idle_copiers else 0.0)
    # Until a tile can be read, and until its place may be used again.
    return max(busy + takes.barrier, alone + 2 * exchange, comes)
