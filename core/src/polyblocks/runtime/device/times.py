"""How long the kernels of a program take, between events on their stream."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from polyblocks.isolation import forks
from polyblocks.runtime.device.driver import Driver

#: Calls whose events are kept before those that have passed are looked at.
_KEPT = 256


class KernelTimes:
    """The times of one program on one device, compiled with the option ``profile``.

    Args:
        driver: of the device.
        device: its number.
        names: ``kernel`` and ``nest`` of each row, the whole program first, then its launches.
    """

    def __init__(self, driver: Driver, device: int, names: Sequence[Mapping[str, str]]) -> None:
        self._driver, self._device = driver, device
        self._names = names
        self._table: list[list[float]] = [[] for _ in names]
        self._pending: deque[tuple[int, ...]] = deque()
        self._lock = forks.lock()

    def around(self, launches: Sequence[Callable[[int], None]]) -> Callable[[int], None]:
        """A function of a stream that runs all launches with events between them.

        A stream that records a graph gets the launches alone.
        """

        def run(stream: int) -> None:
            driver = self._driver
            if driver.is_capturing(stream):
                for launch in launches:
                    launch(stream)
                return
            events = [driver.record(stream, timed=True)]
            for launch in launches:
                launch(stream)
                events.append(driver.record(stream, timed=True))
            self._pending.append(tuple(events))
            if len(self._pending) > _KEPT:
                self._collect()

        return run

    def rows(self) -> list[dict[str, Any]]:
        """See :class:`polyblocks.runtime.executable.Executable`; waits for the device."""
        self._driver.synchronize(self._device)
        self._collect()
        return [
            {
                **name,
                "calls": len(seconds),
                "seconds": sum(seconds),
                "minimum": min(seconds, default=None),
            }
            for name, seconds in zip(self._names, self._table, strict=True)
        ]

    def _collect(self) -> None:
        """Take the times of the calls that are done."""
        driver = self._driver
        with self._lock:
            while self._pending and driver.has_passed(self._pending[0][-1]):
                events = self._pending.popleft()
                pairs = [(events[0], events[-1]), *pairwise(events)]
                for seconds, (first, then) in zip(self._table, pairs, strict=True):
                    seconds.append(driver.elapsed(first, then))
                for event in events:
                    driver.destroy_event(event)
