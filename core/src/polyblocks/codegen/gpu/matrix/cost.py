"""What a kernel of matrix units takes: the unit, shared memory, the caches behind, and waiting."""

from __future__ import annotations

from math import ceil

from polyblocks.affine.cost import rates
from polyblocks.codegen.gpu.mapping.kernel_cost import IMPOSSIBLE, Predicted
from polyblocks.codegen.gpu.mapping.registers import registers
from polyblocks.codegen.gpu.matrix.kernel import MatrixKernel, padded
from polyblocks.occupancy import occupancy
from polyblocks.target import Multiprocessor, TargetDescription


def predict_matrix(
    kernel: MatrixKernel, target: TargetDescription, chip: Multiprocessor
) -> Predicted:
    """Seconds of a kernel of matrix units.

    Blocks run in waves, of which the last one may leave multiprocessors idle. For each slice a warp
    reads a row of chunks for each of its rows, and one for each of its columns. What else threads
    do takes slots in which instructions start.
    """
    units = max(target.shared_level.size, 1)
    needed = registers(kernel)
    if needed > chip.registers_per_thread:
        return IMPOSSIBLE
    resident = occupancy(chip, needed, kernel.shared_bytes(), kernel.threads).blocks
    if resident < 1:
        return IMPOSSIBLE
    blocks = kernel.blocks
    at_once = min(resident, ceil(blocks / units))
    # Multiprocessors that have one block less than others wait for these.
    shares = ceil(blocks / units) * units / blocks
    warps = kernel.threads // chip.warp
    # A warp for each partition keeps its unit busy, two hide what else they do.
    busy = min(1.0, at_once * warps / (2 * chip.partitions))
    products = padded(kernel)
    matrix = 2.0 * products / kernel.unit.flops if kernel.unit.flops else None
    width = kernel.element_bytes
    (m, n, _), (i, j) = kernel.unit.shape, kernel.of_warp
    # What a warp reads of shared memory for each product of its tile.
    reads = products * (1 / (m * i) + 1 / (n * j)) * width
    rows, columns, depth = kernel.tile
    steps = ceil(kernel.counts[2] / depth)
    copied = blocks * steps * depth * (rows + columns) * width
    fetched = blocks * steps * depth * kernel.copied_bytes
    stored = blocks * rows * columns * width
    shared = target.memory_level("shared")
    on_chip = None if shared is None else rates.bandwidth(target, shared, units)
    # What blocks share comes from the first cache behind them whose rate is known.
    behind = target.memory[target.memory.index(shared) + 1 :] if shared else ()
    near = next((level for level in behind if level.bandwidth), None)
    cache = None if near is None else rates.bandwidth(target, near, units)
    waves = ceil(blocks / (units * at_once))
    of_thread = kernel.reading + sum(kernel.copying(o) for o in kernel.product.operands)
    issued = rates.compute_seconds(target, blocks * steps * kernel.threads * of_thread)
    takes = chip.latencies
    known = None not in (matrix, on_chip)
    return Predicted(
        memory=None if cache is None else (fetched + stored) / cache,
        # Tiles are written to shared memory once more than they come from the caches.
        compute=max(matrix or 0.0, (reads + copied) / (on_chip or 1.0), issued or 0.0)
        * shares
        / busy
        if known
        else None,
        # Until the first operands are there, and until the results are stored.
        latency=waves * (steps * takes.exchange / at_once + 2 * takes.memory)
        if takes.known
        else None,
    )
