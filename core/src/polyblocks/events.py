"""Events: what the compiler tells those who watch (progress line, timing, explain, plugins).

There is one sink per process: the registry's dispatcher to the ``observe`` hooks in the user's
process, a pipe to the parent in an isolated child.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

#: Every kind of event, with the keys of its data.
KINDS: dict[str, str] = {
    "compile-begin": "name, target",
    "compile-end": "name, seconds; error if it failed",
    "stage-begin": "stage",
    "stage-end": "stage, seconds",
    "pass-begin": "stage, name",
    "pass-end": "stage, name, seconds",
    "decision": "pass, nest, what, and its numbers",
    "cache-hit": "key",
    "cache-miss": "key",
    "fallback": "op, reason, location",
    "hook-call": "text; only with POLYBLOCKS_TRACE_HOOKS",
}


@dataclass(frozen=True)
class Event:
    """One thing that happened. ``data`` holds JSON values only, so that it crosses processes."""

    kind: str
    data: dict[str, Any] = field(default_factory=dict)
    time: float = field(default_factory=time.time)


Sink = Callable[[Event], None]


def _nobody(event: Event) -> None:
    del event


_sink: Sink = _nobody


def set_sink(sink: Sink | None) -> Sink:
    """Make ``sink`` receive all later events of this process; returns the one it replaces."""
    global _sink
    previous, _sink = _sink, sink or _nobody
    return previous


_listeners: ContextVar[tuple[Sink, ...]] = ContextVar("polyblocks_listeners", default=())


@contextmanager
def listening(listener: Sink) -> Iterator[None]:
    """Also send the events that this thread emits inside the block to ``listener``."""
    token = _listeners.set((*_listeners.get(), listener))
    try:
        yield
    finally:
        _listeners.reset(token)


def redirect(sink: Sink) -> None:
    """Send all later events of this process to ``sink`` alone; for an isolated child."""
    set_sink(sink)
    _listeners.set(())


def emit(kind: str, **data: Any) -> None:
    """Send one event to the listeners of this thread and to the process's sink."""
    event = Event(kind, data)
    for listener in _listeners.get():
        listener(event)
    _sink(event)


@contextmanager
def timed_pass(stage: str, name: str) -> Iterator[None]:
    """Report what runs inside the block as a pass; one that raises has no end."""
    emit("pass-begin", stage=stage, name=name)
    begin = time.perf_counter()
    yield
    emit("pass-end", stage=stage, name=name, seconds=time.perf_counter() - begin)


class Record:
    """A listener that collects what the report of one compilation shows."""

    def __init__(self) -> None:
        self.passes: list[dict[str, Any]] = []
        self.decisions: list[dict[str, Any]] = []

    def __call__(self, event: Event) -> None:
        if event.kind == "pass-end":
            self.passes.append(event.data)
        elif event.kind == "decision":
            self.decisions.append(event.data)
