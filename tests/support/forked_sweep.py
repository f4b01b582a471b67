"""Samples in forked workers: a crash ends one worker, is counted, and the sweep goes on."""

from __future__ import annotations

import functools
import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from forked_workers import work

#: Seconds for one sample, where its entry says nothing else.
SAMPLE_LIMIT = 120


@dataclass(frozen=True)
class Outcome:
    """What happened to one sample.

    Attributes:
        kind: ``compiled``, ``fallback``, ``wrong``, ``crashed``, ``timeout`` or ``skipped``.
        reason: one line; empty if compiled.
        ops: names of what the sample exercised.
        left: those of them that were not compiled.
        measured: numbers that the sweep collects of a sample, by name.
    """

    kind: str
    reason: str = ""
    ops: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    measured: dict[str, float] = field(default_factory=dict)


@dataclass
class Entry:
    """A group of samples that one worker runs.

    Attributes:
        name: of the group.
        samples: label and sample.
        limit: seconds for one of them.
        outcomes: label and outcome of every sample that has run.
        seconds: what it took.
    """

    name: str
    samples: Sequence[tuple[str, Any]]
    limit: int = SAMPLE_LIMIT
    outcomes: list[tuple[str, Outcome]] = field(default_factory=list)
    seconds: float = 0.0


class _Worker:
    """A forked process that runs one entry from the first sample without an outcome on."""

    def __init__(self, entry: Entry, check: Callable[[Any], Outcome]) -> None:
        self.entry, self.check = entry, check
        self.began = time.monotonic()
        self.ended = False
        self._rest = b""
        self.pipe, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.pipe)
            _child(entry, check, write)
        os.close(write)

    def read(self) -> bool:
        """Take what the worker says; False at its end."""
        data = os.read(self.pipe, 1 << 16)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if message == "end":
                self.ended = True
            else:
                self._add(Outcome(**{k: tuple(v) if isinstance(v, list) else v
                                     for k, v in message.items()}))  # fmt: skip
        return bool(data)

    def _add(self, outcome: Outcome) -> None:
        done = self.entry.outcomes
        done.append((self.entry.samples[len(done)][0], outcome))

    def finish(self) -> _Worker | None:
        """Reap the process; returns its successor if samples are left."""
        os.close(self.pipe)
        _, status = os.waitpid(self.pid, 0)
        self.entry.seconds += time.monotonic() - self.began
        if not self.ended:
            number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
            if number == signal.SIGALRM:
                self._add(Outcome("timeout", f"more than {self.entry.limit} s"))
            else:
                how = signal.Signals(number).name if number else f"exit status {status >> 8}"
                self._add(Outcome("crashed", how))
        if len(self.entry.outcomes) < len(self.entry.samples):
            return _Worker(self.entry, self.check)
        return None


def _child(entry: Entry, check: Callable[[Any], Outcome], write: int) -> None:
    status = 1
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        for _, sample in entry.samples[len(entry.outcomes) :]:
            signal.alarm(entry.limit)
            os.write(write, json.dumps(vars(check(sample))).encode() + b"\n")
        os.write(write, b'"end"\n')
        status = 0
    finally:
        os._exit(status)


def sweep(
    entries: Sequence[Entry], check: Callable[[Any], Outcome], workers: int
) -> Iterator[Entry]:
    """Run all entries; yields each when it is done.

    Args:
        entries: what to run; outcomes are added to them.
        check: runs one sample, in a worker.
        workers: how many at once.
    """
    starts = (functools.partial(_Worker, entry, check) for entry in entries if entry.samples)
    return (worker.entry for worker in work(starts, workers))
