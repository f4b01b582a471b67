"""Entries in forked workers: a crash ends one worker, is counted, and the sweep goes on."""

from __future__ import annotations

import functools
import json
import os
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from check import Outcome, check, entries, entry_name, limit, samples
from forked_workers import work

from polyblocks.options import CompileOptions

#: Seconds for one sample, and in the simulator.
SAMPLE_LIMIT, SIMULATED_LIMIT = 60, 600


@dataclass(frozen=True)
class Task:
    """What is the same for all entries.

    Attributes:
        count: samples per entry.
        dtype: of the samples.
        options: of the compilations.
        gradients: whether gradients are compared instead of results.
    """

    count: int
    dtype: torch.dtype = torch.float32
    options: CompileOptions = CompileOptions(num_threads=1)  # noqa: RUF009 - it is frozen
    gradients: bool = False

    @property
    def seconds(self) -> int:
        """For one sample."""
        return SIMULATED_LIMIT if self.options.simulate else SAMPLE_LIMIT


@dataclass
class Result:
    """One entry.

    Attributes:
        name: of the entry.
        outcomes: one per sample, in order.
        seconds: what it took.
    """

    name: str
    outcomes: list[Outcome] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def kind(self) -> str:
        """The worst of all samples; ``skipped`` if no sample ran."""
        order = ("crashed", "wrong", "timeout", "fallback", "random", "compiled")
        kinds = {outcome.kind for outcome in self.outcomes}
        return next((kind for kind in order if kind in kinds), "skipped")

    @property
    def reason(self) -> str:
        """Of the first sample with the worst outcome."""
        return next((o.reason for o in self.outcomes if o.kind == self.kind), "")


class _Worker:
    """A forked process that runs one entry from the first sample without an outcome on.

    Compilations run in it without processes of their own, which takes half the time. If it dies,
    the sample is repeated with them (``isolated``), as users have it: there the death of a
    compilation is a fallback, and only the death of the program itself a crash.
    """

    def __init__(self, op: Any, result: Result, task: Task, isolated: bool = False) -> None:
        self.op, self.result, self.task, self.isolated = op, result, task, isolated
        self.began = time.monotonic()
        self.begun = False
        self.ended = False
        self._rest = b""
        self.pipe, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.pipe)
            _child(op, len(result.outcomes), task, isolated, write)
        os.close(write)

    def read(self) -> bool:
        """Take what the worker says; False at its end."""
        data = os.read(self.pipe, 1 << 16)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if message == "begin":
                self.begun = True
            elif message == "end":
                self.ended = True
            else:
                self.begun = False
                self.result.outcomes.append(Outcome(**message))
        return bool(data)

    def finish(self) -> _Worker | None:
        """Reap the process; returns its successor if samples are left."""
        os.close(self.pipe)
        _, status = os.waitpid(self.pid, 0)
        self.result.seconds += time.monotonic() - self.began
        if self.ended:
            return None
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        if number == signal.SIGALRM:
            self.result.outcomes.append(Outcome("timeout", f"more than {self.task.seconds} s"))
        elif self.begun and number and not self.isolated:
            return _Worker(self.op, self.result, self.task, isolated=True)
        elif number or status:
            how = signal.Signals(number).name if number else f"exit status {status >> 8}"
            self.result.outcomes.append(Outcome("crashed", how))
            if not self.begun:
                return None
        return _Worker(self.op, self.result, self.task)


def _child(op: Any, start: int, task: Task, isolated: bool, write: int) -> None:
    status = 1
    try:
        os.environ["POLYBLOCKS_ISOLATE"] = str(int(isolated))
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)

        def say(message: Any) -> None:
            os.write(write, json.dumps(message).encode() + b"\n")

        limit(task.seconds)
        chosen, refused = samples(op, task.dtype, task.count, task.gradients)
        chosen = chosen[start:]
        for sample in chosen[:1] if isolated else chosen:
            say("begin")
            limit(task.seconds)
            say(vars(check(op, sample, task.options, task.gradients)))
        if not isolated:
            if refused is not None:
                say(vars(refused))
            say("end")
        status = 0
    finally:
        os._exit(status)


def warm_up(task: Task) -> None:
    """Compile once, so that no worker has to import and to build what every compilation needs.

    Most entries take less time than that.
    """
    op = next(op for op in entries(task.dtype) if entry_name(op) == "mul")
    chosen, _ = samples(op, task.dtype, 1)
    check(op, chosen[0], task.options)


def sweep(ops: Iterable[Any], workers: int, task: Task) -> Iterator[Result]:
    """Run all entries; yields each when it is done."""
    starts = (functools.partial(_Worker, op, Result(entry_name(op)), task) for op in ops)
    return (worker.result for worker in work(starts, workers))
