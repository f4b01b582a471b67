"""Limits that Linux control groups (a container, a batch system) set on this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc/self/cgroup")
ROOT = Path("/sys/fs/cgroup")


def cpu_quota() -> float | None:
    """How many CPUs' worth of time this process may use; None without a limit.

    Sources: Linux admin-guide/cgroup-v2 (``cpu.max``), scheduler/sched-bwc (``cpu.cfs_*``).
    """
    quotas = []
    for folder in _folders("cpu"):
        limit = _numbers(folder / "cpu.max")  # version 2: quota and period, in microseconds
        if not limit:
            limit = _numbers(folder / "cpu.cfs_quota_us") + _numbers(folder / "cpu.cfs_period_us")
        if len(limit) == 2 and min(limit) > 0:
            quotas.append(limit[0] / limit[1])
    return min(quotas, default=None)


def memory_limit() -> int | None:
    """Bytes of memory that this process's group may use; None without a limit."""
    limits = []
    for folder in _folders("memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            limits += _numbers(folder / name)
    return min((n for n in limits if n > 0), default=None)


def _folders(controller: str) -> Iterator[Path]:
    """The folders of this process's group and of its parents, whose limits hold too."""
    try:
        lines = PROC.read_text().splitlines()
    except OSError:  # not Linux
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":  # version 2
            base = ROOT if (ROOT / "cgroup.controllers").exists() else ROOT / "unified"
        elif controller in controllers.split(","):
            base = ROOT / controller
        else:
            continue
        folder = base / path.lstrip("/")
        # In a container the path may be that of the host, and only the root is there.
        yield base
        while folder != base and base in folder.parents:
            yield folder
            folder = folder.parent


def _numbers(path: Path) -> list[int]:
    """The integers in a file; ``max`` (no limit) is -1. Nothing if it cannot be read."""
    try:
        return [-1 if word == "max" else int(word) for word in path.read_text().split()]
    except (OSError, ValueError):
        return []
