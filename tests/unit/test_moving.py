"""Nests that make way for another one: the program computes the same."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from tests.support.nest_interpreter import Machine
from tests.support.nests import buffer, weighted

from polyblocks.affine.model import Buffer, Nest, Sequence, reads, writes
from polyblocks.affine.rewrites.moving import in_the_way, move_before
from polyblocks.affine.users import Users


def results(sequence: Sequence, buffers: list[Buffer]) -> list[np.ndarray]:
    """What the buffers hold in the end; they start with different numbers."""
    machine = Machine({b: np.full(b.shape, float(i)) for i, b in enumerate(buffers)})
    machine.run(sequence)
    return [machine.array(b) for b in buffers]


@pytest.mark.parametrize("seed", range(200))
def test_the_last_one_may_run_right_behind_the_first(seed: int) -> None:
    rng = random.Random(seed)
    buffers = [buffer(3) for _ in range(6)]

    def some() -> Nest:
        source, target = rng.sample(buffers, 2)
        return weighted(target, (0,), (3,), (source, (0,), 2.0), (target, (0,), rng.random()))

    nests = [some() for _ in range(7)]
    sequence = Sequence(list(nests), buffers)
    expected = results(sequence, buffers)
    users = Users(sequence)
    at, end = sorted(rng.sample(range(7), 2))
    first, last = nests[at], nests[end]
    made = {b.base for b in writes(first)}
    needs = {b.base for b in reads(last)} - made
    if any(made & {b.base for b in writes(n)} for n in nests[at + 1 : end]):
        return
    moving = in_the_way(sequence, users, first, last, needs, {b.base for b in writes(last)})
    if moving is None:
        return
    assert all(at < nests.index(n) < end for n in moving)
    move_before(sequence, users, moving, first)
    sequence.items.remove(last)
    sequence.items.insert(sequence.items.index(first) + 1, last)
    for before, after in zip(expected, results(sequence, buffers), strict=True):
        np.testing.assert_array_equal(before, after)
    order = sequence.nests()
    for one, other in itertools.pairwise(order):
        assert one is last or other is last or users.before(one, other)


def test_some_make_way_and_some_cannot() -> None:
    made, factor, out, other = (buffer(3) for _ in range(4))
    source = buffer(3, kind="input")
    first = weighted(made, (0,), (3,), (source, (0,), 1.0))
    between = weighted(factor, (0,), (3,), (source, (0,), 2.0))
    last = weighted(out, (0,), (3,), (made, (0,), 1.0), (factor, (0,), 1.0))
    aside = weighted(other, (0,), (3,), (source, (0,), 3.0))
    sequence = Sequence([first, aside, between, last], [made, factor, out, other, source])
    users = Users(sequence)
    assert in_the_way(sequence, users, first, last, {factor}, {out}) == [between]
    between.replace(weighted(factor, (0,), (3,), (made, (0,), 2.0)).body)
    users.refresh(between)
    assert in_the_way(sequence, users, first, last, {factor}, {out}) is None
