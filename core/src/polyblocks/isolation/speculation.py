"""Speculative compilations: jobs that run in a child before their results are asked for.

A backward graph is compiled when the first gradient is asked for, and known when the forward graph
is: on two cores both take no longer than one of them. A thread reads what each child writes, since
its result may never be asked for.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from polyblocks import events
from polyblocks.errors import PolyBlocksError
from polyblocks.isolation import forks
from polyblocks.isolation.isolation import can_isolate, start_isolated

#: Number of results that are kept until they are asked for, those of the last jobs.
KEPT = 8


@dataclass(eq=False)
class _Job:
    thread: threading.Thread | None = None
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    result: bytes | None = None

    def note(self, kind: str, **data: Any) -> None:
        self.events.append((kind, data))


_jobs: dict[str, _Job] = {}
#: Guards the table; never held while waiting.
_guard = forks.lock()


def is_worthwhile() -> bool:
    """Whether there is a core for another compilation, and a process to run it in."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:
        cores = os.cpu_count() or 1
    return cores > 1 and can_isolate()


def start(key: str, job: Callable[[], bytes], label: str) -> None:
    """Run a job in a child of its own from now on.

    Args:
        key: what :func:`take` is asked for.
        job: see :func:`polyblocks.isolation.isolation.run_isolated`.
        label: what is being done, for messages.

    Raises:
        MachineError: no process can be started.
    """
    with _guard:
        if key in _jobs:
            return
        for old in list(_jobs)[: max(0, len(_jobs) + 1 - KEPT)]:
            del _jobs[old]
        made = _jobs[key] = _Job()
    try:
        finish = start_isolated(job, made.note, label)
    except PolyBlocksError:
        _forget(key)
        raise

    def wait() -> None:
        try:
            made.result = finish()
        except PolyBlocksError:
            # Where its result is asked for, the job runs once more, and raises the error.
            _forget(key)

    made.thread = threading.Thread(target=wait, name=f"polyblocks {label}", daemon=True)
    made.thread.start()


def take(key: str) -> bytes | None:
    """The result of a job that was started, once; None if none was, or it has failed.

    Waits for it, and emits the events that the job has emitted.
    """
    with _guard:
        job = _jobs.pop(key, None)
    if job is None or job.thread is None:
        return None
    job.thread.join()
    if job.result is not None:
        for kind, data in job.events:
            events.emit(kind, **data)
    return job.result


def _forget(key: str) -> None:
    with _guard:
        _jobs.pop(key, None)


@forks.in_child
def _after_fork() -> None:
    # The threads are the parent's.
    _jobs.clear()
