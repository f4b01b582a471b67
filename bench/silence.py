"""Silence between the turns, and what others do with it."""

from __future__ import annotations

import os
import statistics
import time
from pathlib import Path

#: Part of a silence in which nobody is watched: the last peer's threads may spin in it.
BLIND = 2 / 3

_STAT = Path("/proc/stat")


class Silence:
    """Sleeps, and watches how many processors are busy meanwhile.

    Nobody of ours runs in a silence, so what is busy are other processes: a measure of how much
    the results can be trusted.
    """

    def __init__(self) -> None:
        self.samples: list[float] = []

    def keep(self, seconds: float) -> None:
        """Sleep for so many seconds."""
        time.sleep(seconds * BLIND)
        before, begin = busy_seconds(), time.perf_counter()
        time.sleep(seconds * (1 - BLIND))
        after, length = busy_seconds(), time.perf_counter() - begin
        if before is not None and after is not None and seconds > 0:
            self.samples.append((after - before) / length)

    def busy(self) -> float | None:
        """Processors that others kept busy, the mean over all silences; None if not known."""
        return statistics.fmean(self.samples) if self.samples else None


def busy_seconds(path: Path = _STAT) -> float | None:
    """Seconds that all processors together have worked since the start; None if not told.

    Linux counts ticks: user, nice, system, idle, iowait, irq, softirq, steal.
    """
    try:
        fields = path.read_text().split("\n", 1)[0].split()
    except OSError:
        return None
    ticks = [int(field) for field in fields[1:9]]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")
