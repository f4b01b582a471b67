"""What a tiled contraction takes: units, shared memory, the caches behind, and waiting."""

from __future__ import annotations

from math import ceil

from polyblocks.affine import operation_cost as cost
from polyblocks.codegen.gpu.mapping.contraction import TiledKernel
from polyblocks.codegen.gpu.mapping.kernel_cost import CACHE_RATE, Predicted
from polyblocks.codegen.gpu.mapping.registers import registers
from polyblocks.target import Multiprocessor, TargetDescription

#: Seconds of a turn that other warps do not hide: two barriers, and the stores between them.
TURN = 60e-9
#: Seconds until the first operands are there, and until the results are stored.
LATENCY = 1e-6
#: Warps of a multiprocessor that keep its units busy, with many independent sums each.
WARPS = 8


def predict_contraction(
    kernel: TiledKernel, target: TargetDescription, chip: Multiprocessor
) -> Predicted:
    """Seconds of a tiled kernel.

    Blocks run in waves, of which the last one may leave multiprocessors idle; a thread reads of
    shared memory one value per row and one per column for each product of both.
    """
    units = max(target.shared_level.size, 1)
    threads, blocks = kernel.threads, kernel.blocks
    rows, columns, depth = kernel.tile
    needed = registers(kernel)
    if needed > chip.registers_per_thread:
        return Predicted(float("inf"), float("inf"), float("inf"))
    resident = min(
        chip.threads // threads,
        chip.registers // (needed * threads),
        chip.shared // max(kernel.shared_bytes(), 1),
        chip.blocks,
    )
    if resident < 1:
        return Predicted(float("inf"), float("inf"), float("inf"))
    at_once = min(resident, ceil(blocks / units))
    # Multiprocessors that have one block less than others wait for these.
    shares = ceil(blocks / units) * units / blocks
    busy = min(1.0, at_once * threads / chip.warp / WARPS)
    steps = kernel.counts[2]
    padded = blocks * rows * columns * steps
    body = kernel.parts.reduction.body
    compute = cost.compute_seconds(target, cost.operations(body) * padded) * shares / busy
    r, c = kernel.of_thread
    per_side = [sum(o.of_rows == side for o in kernel.parts.operands) for side in (True, False)]
    reads = padded * (per_side[0] / c + per_side[1] / r) * 4
    shared = target.memory_level("shared")
    rate = (shared.bandwidth if shared is not None and shared.bandwidth else 1e11) * units
    on_chip = reads / rate * shares
    main = target.memory[-1].bandwidth or 1e12
    copied = blocks * steps * (rows * per_side[0] + columns * per_side[1]) * 4
    stored = blocks * rows * columns * 4
    memory = (copied + stored) / (CACHE_RATE * main)
    turns = ceil(steps / depth)
    waves = ceil(blocks / (units * resident))
    waiting = waves * (turns * TURN / at_once + LATENCY)
    return Predicted(memory=memory, compute=max(compute, on_chip), latency=waiting)
