"""Forked processes that work off a list, some at a time."""

from __future__ import annotations

import selectors
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar


class Worker(Protocol):
    """A process and the end of a pipe on which it says how far it is.

    Attributes:
        pipe: file descriptor to be read.
    """

    pipe: int

    def read(self) -> bool:
        """Take what the process says; False at its end."""

    def finish(self) -> Worker | None:
        """Reap the process; returns its successor if it left something undone."""


W = TypeVar("W", bound=Worker)


def work(starts: Iterable[Callable[[], W]], count: int) -> Iterator[W]:
    """Start workers one after the other; yields each that is finished without a successor.

    Args:
        starts: what makes them; taken when there is room.
        count: how many run at once.
    """
    waiting = iter(starts)
    selector = selectors.DefaultSelector()

    def begin() -> None:
        start = next(waiting, None)
        if start is not None:
            watch(start())

    def watch(worker: W) -> None:
        selector.register(worker.pipe, selectors.EVENT_READ, worker)

    for _ in range(count):
        begin()
    while selector.get_map():
        for key, _ in selector.select():
            worker = key.data
            if worker.read():
                continue
            selector.unregister(worker.pipe)
            successor = worker.finish()
            if successor is not None:
                watch(successor)
                continue
            yield worker
            begin()
