"""Nests through which the results of one contraction reach another one."""

from __future__ import annotations

from collections.abc import Collection

from polyblocks.affine.cost import rates
from polyblocks.affine.cost.constants import PRIVATE_BYTES
from polyblocks.affine.model import Buffer, Nest, reads, writes
from polyblocks.affine.users import Users
from polyblocks.target import TargetDescription


def chain_of(
    last: Nest,
    buffers: Collection[Buffer],
    products: Collection[Nest],
    stages: Collection[Nest],
    users: Users,
) -> list[Nest] | None:
    """The nests on all ways from contractions to the last one through buffers that it reads.

    A way begins at the nearest contraction. Anything else that the nests read is there before.

    Args:
        last: a contraction.
        buffers: that it reads.
        products: the contractions.
        stages: all nests that may be part of a chain.
        users: of all buffers.

    Returns:
        the nests in the order of the program, ``last`` included; None if there is no such way.
    """
    found: dict[Nest, bool] = {}

    def leads(nest: Nest) -> bool:
        """Whether a way begins before a nest, or at it."""
        if nest not in found:
            found[nest] = nest in stages and nest in products
            if nest in stages and nest not in products:
                # All of them, so that every way is found.
                ways = [passes(b) for b in dict.fromkeys(b.base for b in reads(nest))]
                found[nest] = True in ways
        return found[nest]

    def passes(read: Buffer) -> bool:
        """Whether a way goes through a buffer."""
        writers = [w for w in users.writers(read) if isinstance(w, Nest) and users.before(w, last)]
        return True in [leads(w) for w in writers]

    if True not in [passes(b.base) for b in buffers]:
        return None
    chain = [nest for nest, on_a_way in found.items() if on_a_way and nest is not last]
    return [*sorted(chain, key=users.position), last]


def is_large(chain: list[Nest], target: TargetDescription) -> bool:
    """Whether the private caches of all threads have no room for what goes through a chain."""
    passed = {b.base for nest in chain for b in reads(nest)}
    passed &= {b.base for nest in chain for b in writes(nest)}
    private = rates.private_cache(target) or PRIVATE_BYTES
    return sum(b.nbytes for b in passed) > private * max(target.shared_level.size, 1)
