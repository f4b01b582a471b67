"""Seconds of calls: by events on a GPU, by the clock where programs run in the simulator."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Protocol

import torch

from bench.calls import timed
from bench.gpu.bundle import SIMULATOR


class Clock(Protocol):
    """How calls are timed, and where their arrays are.

    Attributes:
        device: PyTorch's name of it.
        name: what the vendor calls it, for the results.
    """

    device: str
    name: str

    def samples(self, call: Callable[[], Any], seconds: float) -> list[float]:
        """Seconds of each of as many calls as fill the time, two at least; none overlap."""

    def synchronize(self) -> None:
        """Wait until everything is done."""


class Events:
    """On the GPU that is current: an event between each two calls, nobody waits in between.

    The host is ahead of the GPU wherever a call takes the GPU longer than the host, so that what
    is timed is the GPU's work alone.
    """

    device = "cuda"

    def __init__(self) -> None:
        self.name: str = torch.cuda.get_device_name()

    def samples(self, call: Callable[[], Any], seconds: float) -> list[float]:
        """See :class:`Clock`."""
        each = self._chain(call, 2)[-1]
        count = max(2, min(1000, round(seconds / max(each, 1e-7))))
        return self._chain(call, count)

    def synchronize(self) -> None:
        """See :class:`Clock`."""
        torch.cuda.synchronize()

    def _chain(self, call: Callable[[], Any], count: int) -> list[float]:
        events = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
        events[0].record()
        for event in events[1:]:
            call()
            event.record()
        torch.cuda.synchronize()
        pairs = itertools.pairwise(events)
        return [first.elapsed_time(then) / 1e3 for first, then in pairs]


class Simulation:
    """No GPU: the times are the simulator's own, and say nothing of a chip."""

    device = "cpu"
    name = SIMULATOR

    def samples(self, call: Callable[[], Any], seconds: float) -> list[float]:
        """See :class:`Clock`."""
        return timed(call, seconds)

    def synchronize(self) -> None:
        """See :class:`Clock`."""
