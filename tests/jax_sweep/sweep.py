"""Entries in forked workers: a crash ends one worker, is counted, and the sweep goes on."""

from __future__ import annotations

import functools
import json
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from check import Outcome, check, limit
from forked_workers import work
from samples import Entry

#: Seconds for one sample.
SAMPLE_LIMIT = 60


@dataclass
class Result:
    """One entry.

    Attributes:
        name: of the entry.
        outcomes: label and outcome of every sample, in order.
        seconds: what it took.
    """

    name: str
    outcomes: list[tuple[str, Outcome]] = field(default_factory=list)
    seconds: float = 0.0

    def count(self, kind: str) -> int:
        """Samples of this outcome."""
        return sum(outcome.kind == kind for _, outcome in self.outcomes)

    @property
    def kind(self) -> str:
        """The worst of all samples; ``skipped`` if XLA compiles none."""
        order = ("crashed", "wrong", "timeout", "fallback", "compiled")
        return next((kind for kind in order if self.count(kind)), "skipped")

    def first(self, kind: str) -> str:
        """Label and reason of the first sample of an outcome."""
        found = ((label, o.reason) for label, o in self.outcomes if o.kind == kind)
        return ": ".join(next(found, ("", "")))


class _Worker:
    """A forked process that runs one entry from the first sample without an outcome on.

    JAX starts its threads at the first computation, which only workers do.
    """

    def __init__(self, entry: Entry, result: Result) -> None:
        self.entry, self.result = entry, result
        self.began = time.monotonic()
        self.label = ""
        self.ended = False
        self._rest = b""
        self.pipe, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.pipe)
            _child(entry, len(result.outcomes), write)
        os.close(write)

    def read(self) -> bool:
        """Take what the worker says; False at its end."""
        data = os.read(self.pipe, 1 << 16)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if message == "end":
                self.ended = True
            elif "begin" in message:
                self.label = message["begin"]
            else:
                self.result.outcomes.append((self.label, Outcome(**message)))
                self.label = ""
        return bool(data)

    def finish(self) -> _Worker | None:
        """Reap the process; returns its successor if samples are left."""
        os.close(self.pipe)
        _, status = os.waitpid(self.pid, 0)
        self.result.seconds += time.monotonic() - self.began
        if self.ended:
            return None
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        if number in (signal.SIGPROF, signal.SIGALRM):
            outcome = Outcome("timeout", f"more than {SAMPLE_LIMIT} s")
        else:
            how = signal.Signals(number).name if number else f"exit status {status >> 8}"
            outcome = Outcome("crashed", how)
        self.result.outcomes.append((self.label or "before the first sample", outcome))
        return _Worker(self.entry, self.result) if self.label else None


def _child(entry: Entry, start: int, write: int) -> None:
    status = 1
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)

        def say(message: Any) -> None:
            os.write(write, json.dumps(message).encode() + b"\n")

        limit(SAMPLE_LIMIT)
        for number, sample in enumerate(entry.samples()):
            if number < start:
                continue
            say({"begin": sample.label})
            limit(SAMPLE_LIMIT)
            outcome = check(sample)
            say({"kind": outcome.kind, "reason": outcome.reason})
        say("end")
        status = 0
    finally:
        os._exit(status)


def sweep(entries: list[Entry], workers: int) -> Iterator[Result]:
    """Run all entries; yields each when it is done."""
    starts = (functools.partial(_Worker, entry, Result(entry.name)) for entry in entries)
    return (worker.result for worker in work(starts, workers))
