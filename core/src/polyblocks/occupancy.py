"""How many blocks a multiprocessor holds at once, and what keeps it from holding more.

The rules are those that vendors publish for their GPUs (the occupancy calculators of the toolkits,
the notes on register files in the instruction set manuals), with the numbers taken from a
:class:`polyblocks.target.Multiprocessor`:

* registers are handed out to warps, rounded up per thread; a warp lives in one partition, so the
  rest of a partition that is too small for a warp is lost;
* shared memory is handed out to blocks, rounded up, with what the system reserves added;
* a multiprocessor has a limit of warps and of blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from polyblocks.target import Multiprocessor

#: The limiting resources, in the order of ``Occupancy.limited_by``.
RESOURCES = ("warps", "blocks", "registers", "shared")

#: Nests that one launch has, for too few blocks each, and what lies between two, at most.
MOST_JOINED, JOINED_REACH = 4, 8

#: Phases of a launch whose blocks wait for each other, at most.
MOST_PHASES = 8


@dataclass(frozen=True)
class Occupancy:
    """The answer of :func:`occupancy`.

    Attributes:
        blocks: resident at once on one multiprocessor; 0 if a block cannot run at all.
        warps: the warps of these blocks.
        fraction: ``warps`` over the warps that the multiprocessor has room for.
        limited_by: those of :data:`RESOURCES` that allow no further block.
    """

    blocks: int
    warps: int
    fraction: float
    limited_by: tuple[str, ...]


def padded_bytes(shape: Sequence[int], element: int) -> int:
    """Bytes of shared memory of a buffer, whose rows have an element more for padding.

    Args:
        shape: its extents.
        element: bytes of an element.
    """
    nbytes = prod(shape, start=element)
    rows = len(shape) > 1 and shape[-1] > 1
    return nbytes + (nbytes // shape[-1] if rows else 0)


def occupancy(
    multiprocessor: Multiprocessor,
    registers_per_thread: int,
    shared_bytes: int,
    threads_per_block: int,
) -> Occupancy:
    """How many blocks of this kind one multiprocessor holds at once.

    Args:
        multiprocessor: of the target.
        registers_per_thread: as the assembler reports them, before rounding.
        shared_bytes: shared memory of a block, static and dynamic together.
        threads_per_block: the block's size.

    Raises:
        ValueError: a negative number, or a block without threads.
    """
    if registers_per_thread < 0 or shared_bytes < 0 or threads_per_block < 1:
        raise ValueError(
            "a block has at least one thread and no negative needs, not "
            f"registers_per_thread={registers_per_thread}, shared_bytes={shared_bytes}, "
            f"threads_per_block={threads_per_block}"
        )
    chip = multiprocessor
    warps = warps_of_block(chip, threads_per_block)
    fits = threads_per_block <= chip.threads_per_block
    allowed = {
        "warps": chip.warps // warps if fits else 0,
        "blocks": chip.single_warp_blocks if warps == 1 else chip.blocks,
        "registers": _blocks_by_registers(chip, registers_per_thread, warps),
        "shared": _blocks_by_shared(chip, shared_bytes),
    }
    known = {name: n for name, n in allowed.items() if n is not None}
    blocks = min(known.values())
    return Occupancy(
        blocks=blocks,
        warps=blocks * warps,
        fraction=blocks * warps / chip.warps,
        limited_by=tuple(name for name in RESOURCES if known.get(name) == blocks),
    )


def warps_of_block(multiprocessor: Multiprocessor, threads_per_block: int) -> int:
    """The warps of a block; the last one may be partly empty."""
    return -(-threads_per_block // multiprocessor.warp)


def registers_for(multiprocessor: Multiprocessor, threads_per_block: int, blocks: int) -> int:
    """The most registers per thread with ``blocks`` resident blocks.

    Returns:
        Registers per thread, a multiple of the granularity or the most that a thread can have;
        0 if ``blocks`` blocks do not fit whatever their threads use.

    Raises:
        ValueError: fewer than one block or thread.
    """
    chip = multiprocessor
    _at_least_one(blocks)
    warps = warps_of_block(chip, threads_per_block) * blocks
    if occupancy(chip, 0, 0, threads_per_block).blocks < blocks:
        return 0
    in_partition = -(-warps // chip.partitions)
    of_warp = chip.registers // chip.partitions // in_partition
    registers = _round_down(of_warp // chip.warp, chip.register_granularity)
    return min(registers, chip.registers_per_thread)


def shared_for(multiprocessor: Multiprocessor, blocks: int) -> int:
    """The most bytes of shared memory per block with ``blocks`` resident blocks.

    Raises:
        ValueError: fewer than one block.
    """
    chip = multiprocessor
    _at_least_one(blocks)
    share = _round_down(chip.shared // blocks, chip.shared_granularity) - chip.shared_reserved
    return max(min(share, chip.shared_per_block_optin), 0)


def _blocks_by_registers(chip: Multiprocessor, registers_per_thread: int, warps: int) -> int | None:
    if not registers_per_thread:
        return None
    if registers_per_thread > chip.registers_per_thread:
        return 0
    of_warp = _round_up(registers_per_thread, chip.register_granularity) * chip.warp
    in_partition = chip.registers // chip.partitions // of_warp
    return in_partition * chip.partitions // warps


def _blocks_by_shared(chip: Multiprocessor, shared_bytes: int) -> int | None:
    if shared_bytes > chip.shared_per_block_optin:
        return 0
    taken = _round_up(shared_bytes + chip.shared_reserved, chip.shared_granularity)
    return chip.shared // taken if taken else None


def _at_least_one(blocks: int) -> None:
    if blocks < 1:
        raise ValueError(f"blocks must be at least 1, not {blocks}")


def _round_up(n: int, step: int) -> int:
    return -(-n // step) * step


def _round_down(n: int, step: int) -> int:
    return n // step * step
