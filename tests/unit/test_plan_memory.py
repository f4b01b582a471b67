"""Placing buffers: those alive together never share a byte, others do."""

from __future__ import annotations

import random

import pytest

from polyblocks.passes.map.plan_memory import ALIGNMENT, Block, place


@pytest.mark.parametrize("seed", range(50))
def test_no_overlap_among_live_buffers(seed: int) -> None:
    rng = random.Random(seed)
    blocks = []
    for _ in range(rng.randrange(1, 30)):
        first = rng.randrange(20)
        blocks.append(Block(rng.randrange(0, 1000), first, first + rng.randrange(6)))
    offsets, total = place(blocks)
    for i, (a, at) in enumerate(zip(blocks, offsets, strict=True)):
        assert at % ALIGNMENT == 0
        assert at + a.size <= total
        for b, bt in zip(blocks[:i], offsets, strict=False):
            alive = a.first <= b.last and b.first <= a.last
            apart = at + a.size <= bt or bt + b.size <= at
            assert apart or not alive or not a.size or not b.size


def test_buffers_in_turn_share() -> None:
    offsets, total = place([Block(100, 0, 1), Block(100, 2, 3), Block(100, 1, 2)])
    assert offsets[0] == offsets[1]
    assert total == 2 * 128


def plain(blocks: list[Block]) -> list[int]:
    """The same rule, looking at every block that is placed already."""
    offsets: dict[int, int] = {}
    for i in sorted(range(len(blocks)), key=lambda i: (-blocks[i].size, blocks[i].first, i)):
        b = blocks[i]
        taken = sorted(
            (at, at + -(-max(o.size, 1) // ALIGNMENT) * ALIGNMENT)
            for o, at in ((blocks[j], at) for j, at in offsets.items())
            if o.first <= b.last and b.first <= o.last
        )
        at = 0
        for low, high in taken:
            if at + b.size <= low:
                break
            at = max(at, high)
        offsets[i] = at
    return [offsets[i] for i in range(len(blocks))]


def test_looking_only_at_blocks_of_the_same_time_finds_the_same_places() -> None:
    rng = random.Random(0)
    blocks = []
    for _ in range(300):
        first = rng.randrange(300)
        last = first + int(rng.expovariate(0.05))
        blocks.append(Block(rng.choice([0, 4, 100, 4096, 4097]), first, last))
    assert place(blocks)[0] == plain(blocks)
