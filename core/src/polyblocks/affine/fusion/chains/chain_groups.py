"""Chains that compute the same nests again: which ones these leave for others, and which they end.

The gradients of attention multiply the scores' exponentials in three products. Each of them has a
chain of its own, in which scores are computed again; once all three are chains, nothing reads them.
"""

from __future__ import annotations

from collections.abc import Iterable

from polyblocks.affine.fusion.chains.chained_products import ProductChain
from polyblocks.affine.model import Buffer, Nest
from polyblocks.affine.users import Item, Users


def chain_groups(chains: Iterable[ProductChain]) -> list[list[ProductChain]]:
    """Chains with nests in common, together; without groups in which one goes through another's.

    Args:
        chains: in any order, which those of a group keep.
    """
    groups: list[list[ProductChain]] = []
    for chain in chains:
        own = set(chain.nests)
        common = [g for g in groups if any(own & set(other.nests) for other in g)]
        groups = [g for g in groups if g not in common]
        groups.append([*(each for g in common for each in g), chain])
    return [g for g in groups if not _links(g) & {chain.last for chain in g}]


def ended_by(chains: list[ProductChain], users: Users) -> set[Nest]:
    """The nests that nothing needs once these chains are a nest each.

    A number of a row that others need is kept by a chain before all of them.
    """
    ended = _links(chains)
    while True:
        needed = {n for n in ended if _is_needed(n, chains, ended, users)}
        if not needed:
            return ended
        ended -= needed


def keep_numbers(chains: list[ProductChain], ended: set[Nest], users: Users) -> None:
    """Let chains keep what others need of ended nests, in place."""
    for nest in ended:
        for buffer in users.touched(nest)[1]:
            holder = _holder(buffer, chains, users)
            if holder is not None and _readers(buffer, chains, ended, users):
                holder.kept.add(buffer)


def _links(chains: Iterable[ProductChain]) -> set[Nest]:
    return {link.nest for chain in chains for link in chain.links}


def _is_needed(nest: Nest, chains: list[ProductChain], ended: set[Nest], users: Users) -> bool:
    for buffer in users.touched(nest)[1]:
        if not users.is_only_accessed(buffer):
            return True
        readers = _readers(buffer, chains, ended, users)
        holder = _holder(buffer, chains, users)
        if readers and (holder is None or not all(users.before(holder.last, r) for r in readers)):
            return True
    return False


def _holder(buffer: Buffer, chains: list[ProductChain], users: Users) -> ProductChain | None:
    """The first chain that has a number of a row."""
    having = [chain for chain in chains if buffer in chain.held]
    return min(having, key=lambda chain: users.position(chain.last), default=None)


def _readers(
    buffer: Buffer, chains: list[ProductChain], ended: set[Nest], users: Users
) -> list[Item]:
    """Who reads a buffer beside ended nests: chains, where they stand, and others."""
    lasts = {chain.last for chain in chains}
    found = [r for r in users.readers(buffer) if r not in ended and r not in lasts]
    return [*found, *(chain.last for chain in chains if buffer in chain.needs)]
