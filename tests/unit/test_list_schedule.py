"""Orders of instructions."""

from __future__ import annotations

import numpy as np
import pytest

from polyblocks.codegen.list_schedule import Instruction, list_schedule, peak_live_registers


def chain(length: int, first: int, latency: float = 4.0, work: float = 1.0) -> list[Instruction]:
    """Instructions each of which waits for the one before it; the first is at ``first``."""
    return [Instruction((first + i - 1,) if i else (), latency, work) for i in range(length)]


def test_chains_run_side_by_side() -> None:
    block = chain(3, 0) + chain(3, 3)
    assert list_schedule(block, 1) == [0, 3, 1, 4, 2, 5]


def test_the_longer_way_goes_first() -> None:
    block = chain(1, 0) + chain(4, 1)
    assert list_schedule(block, 1)[0] == 1


def test_what_keeps_a_unit_busy_delays_the_others() -> None:
    """Ten cycles of one unit; with a second one the others need not wait."""
    block = [Instruction((), 10, 10), *chain(2, 1, latency=1)]
    assert list_schedule(block, 1) == [0, 1, 2]
    block = [*chain(2, 0, latency=1), Instruction((), 10, 10)]
    assert list_schedule(block, 2) == [2, 0, 1]


def test_what_takes_no_unit_starts_at_once() -> None:
    block = [Instruction((), 9, 4), Instruction((), 0, 0), Instruction((1,), 0, 0)]
    assert sorted(list_schedule(block, 1)[:3]) == [0, 1, 2]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("units", [1, 4])
def test_orders_are_right(seed: int, units: int) -> None:
    """Each once, and what is needed first; more registers are never needed than results."""
    random = np.random.default_rng(seed)
    block = [
        Instruction(
            tuple(sorted({int(j) for j in random.integers(0, i, min(i, 2))})) if i else (),
            float(random.integers(0, 9)),
            float(random.integers(0, 4)),
        )
        for i in range(60)
    ]
    order = list_schedule(block, units)
    place = {i: k for k, i in enumerate(order)}
    assert sorted(order) == list(range(60))
    assert all(place[j] < place[i] for i, one in enumerate(block) for j in one.needs)
    assert 1 <= peak_live_registers(block, order, [1] * 60) <= 60


def test_most_alive() -> None:
    block = [*chain(3, 0), Instruction((0, 2), 1, 1)]
    assert peak_live_registers(block, [0, 1, 2, 3], [1, 1, 1, 1]) == 3
    assert peak_live_registers(chain(5, 0), range(5), [2] * 5) == 4
    # What nobody reads is gone at once.
    assert peak_live_registers([Instruction((), 1, 1)] * 5, range(5), [1] * 5) == 1
