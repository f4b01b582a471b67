"""Notice a child process that waits for something that will never come."""

from __future__ import annotations

import time
from pathlib import Path

_PROC = Path("/proc")
_PAUSE_S = 5.0


class StallWatch:
    """Tells when a process has used no CPU time for a while, and waits for no process of its own.

    A child forked from a process with threads inherits the locks that other threads held, with
    no thread to release them; what needs one of them waits forever. Where ``/proc`` does not say
    what a process does, nothing ever counts as a stall.

    Args:
        pid: the process.
        limit_s: for how long it may do nothing.
    """

    def __init__(self, pid: int, limit_s: float) -> None:
        self._folder = _PROC / str(pid)
        self._limit_s = limit_s
        self._ticks: int | None = None
        self._since = self._looked = time.monotonic()

    def has_stalled(self) -> bool:
        """Look now; to be called every now and then."""
        now = time.monotonic()
        ticks = self._used_ticks()
        # A long pause between two looks: we were stopped (Ctrl-Z), and the child with us.
        paused = now - self._looked > _PAUSE_S
        self._looked = now
        if ticks is None or ticks != self._ticks or paused:
            self._ticks, self._since = ticks, now
        return now - self._since > self._limit_s and not self._has_children()

    def _used_ticks(self) -> int | None:
        try:
            # The second field may hold blanks and parentheses; utime and stime are the 14th and
            # 15th field (proc(5)).
            fields = (self._folder / "stat").read_text().rpartition(")")[2].split()
            return int(fields[11]) + int(fields[12])
        except (OSError, ValueError, IndexError):
            return None

    def _has_children(self) -> bool:
        """Whether it may be waiting for a tool that it runs; True if that cannot be known."""
        try:
            tasks = list((self._folder / "task").iterdir())
            return any((task / "children").read_text().strip() for task in tasks)
        except OSError:
            return True
