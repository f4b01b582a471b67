"""Shared memory that a block of threads has for its buffers."""

from __future__ import annotations

from polyblocks.target import Multiprocessor

#: Bytes of shared memory that the joins of reductions take, at most.
SCRATCH = 4096
#: Blocks that a multiprocessor should have room for, so that one works while the other waits.
BLOCKS = 2


def room_of_tile(chip: Multiprocessor) -> int:
    """Bytes of a tile's buffers where a multiprocessor runs as many blocks as it should."""
    return min(chip.shared_per_block_optin, chip.shared // BLOCKS) - SCRATCH


def room_of_block(chip: Multiprocessor) -> int:
    """Bytes of the buffers of a block, at most."""
    return max(chip.shared_per_block, chip.shared_per_block_optin) - SCRATCH
