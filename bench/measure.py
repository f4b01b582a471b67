"""Measuring in one process, for the demo: peers in turns with idle time between.

``make bench`` gives every peer a process of its own instead, see :mod:`bench.contest`.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from bench.contest import IDLE_S, TURN_S
from bench.errors import max_error
from bench.peers import Contestant


@dataclass
class Timing:
    """What was measured of one peer on one case.

    Attributes:
        peer: its name.
        first_call: seconds of the first call, which compiles.
        samples: seconds of each later call.
        max_error: largest difference from float64, relative to the largest expected magnitude
            where that is above 1; NaN where it did not run or is not checked.
        problem: why it did not run, in one line; empty if it did.
    """

    peer: str
    first_call: float = math.nan
    samples: list[float] = field(default_factory=list)
    max_error: float = math.nan
    problem: str = ""

    @property
    def minimum(self) -> float:
        """Seconds of the fastest call after the first."""
        return min(self.samples)

    @property
    def median(self) -> float:
        """Seconds of the median call after the first."""
        return statistics.median(self.samples)


def compare(
    contestants: Sequence[Contestant],
    inputs: tuple[torch.Tensor, ...],
    expected: torch.Tensor,
    *,
    rounds: int = 5,
    idle_s: float = IDLE_S,
    turn_s: float = TURN_S,
) -> list[Timing]:
    """Run every peer on the same inputs and check what it returns.

    The peers take turns, so that a slower machine for a while is slower for all. Each allocates
    its own outputs, and gives them up after every call.

    Args:
        contestants: the peers; one that cannot run gets a Timing with its problem.
        inputs: arguments of the function; must not be changed by it.
        expected: the result in float64.
        rounds: how many turns each peer has.
        idle_s: seconds of silence before each turn.
        turn_s: seconds of calls in one turn; at least one call.
    """
    timings: list[Timing] = []
    running: list[tuple[Timing, Any]] = []
    for contestant in contestants:
        timing = Timing(contestant.name)
        timings.append(timing)
        try:
            contestant.warm_up()
            call = contestant.prepare()
            begin = time.perf_counter()
            result = call(*inputs)
            timing.first_call = time.perf_counter() - begin
        except Exception as error:
            # Whatever a compiler raises: the others are measured nevertheless.
            timing.problem = contestant.explain(error)
            continue
        if contestant.checked:
            timing.max_error = max_error(result.numpy(), expected.numpy())
        del result
        running.append((timing, call))
    for _ in range(rounds):
        for timing, call in running:
            time.sleep(idle_s)
            timing.samples += one_turn(call, inputs, turn_s)
    return timings


def one_turn(call: Any, inputs: tuple[torch.Tensor, ...], turn_s: float) -> list[float]:
    """Call for ``turn_s`` seconds, at least once; seconds of each call."""
    samples = []
    end = time.perf_counter() + turn_s
    while not samples or time.perf_counter() < end:
        begin = time.perf_counter()
        call(*inputs)
        samples.append(time.perf_counter() - begin)
    return samples


def blur_reference(image: torch.Tensor) -> torch.Tensor:
    """The demo's blur in float64, from shifted sums: C x H x W -> C x (H-4) x (W-4)."""
    taps = (0.0625, 0.25, 0.375, 0.25, 0.0625)
    height, width = image.shape[-2:]
    across = sum(t * image[..., i : i + width - 4] for i, t in enumerate(taps))
    down = sum(t * across[..., i : i + height - 4, :] for i, t in enumerate(taps))
    assert isinstance(down, torch.Tensor)
    return down
