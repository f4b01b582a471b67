"""The index of readers and writers against a plain search, through random changes."""

from __future__ import annotations

import random

import pytest

from polyblocks.affine.model import Buffer, Load, Nest, Sequence, Store, Value, reads, writes
from polyblocks.affine.users import Users


def random_nest(rng: random.Random, buffers: list[Buffer]) -> Nest:
    value = Value("f32")
    body = [Load(value, b, ()) for b in rng.sample(buffers, rng.randrange(3))]
    return Nest([*body, *(Store(value, b, ()) for b in rng.sample(buffers, rng.randrange(2)))], [])


@pytest.mark.parametrize("seed", range(20))
def test_answers_equal_a_search(seed: int) -> None:
    rng = random.Random(seed)
    plain = [Buffer((), "f32", "alloc") for _ in range(4)]
    buffers = [*plain, *(Buffer((), "f32", "other", base=b) for b in plain[:2])]
    items = [random_nest(rng, buffers) for _ in range(8)]
    sequence = Sequence(list(items), buffers)
    users = Users(sequence)
    for _ in range(10):
        changed = rng.choice(sequence.nests())
        changed.replace(random_nest(rng, buffers).body)
        users.refresh(changed)
        if len(sequence.items) > 3:
            gone = rng.choice(sequence.items)
            sequence.items.remove(gone)
            users.drop(gone)
        for buffer in plain:
            assert users.readers(buffer) == [
                i for i in sequence.items if any(b.base is buffer for b in reads(i))
            ]
            assert users.writers(buffer) == [
                i for i in sequence.items if any(b.base is buffer for b in writes(i))
            ]
        first, last = sorted(rng.sample(range(len(sequence.items)), 2))
        between = sequence.items[first + 1 : last]
        chosen = set(rng.sample(plain, 2))
        ends = sequence.items[first], sequence.items[last]
        assert users.written_between(chosen, *ends) == any(
            b.base in chosen for i in between for b in writes(i)
        )
        assert users.read_between(chosen, *ends) == any(
            b.base in chosen for i in between for b in reads(i)
        )
