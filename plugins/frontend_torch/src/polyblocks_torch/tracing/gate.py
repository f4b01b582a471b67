"""Let one thread compile while the others wait, instead of each compiling the same frame.

Dynamo looks a frame up before it takes its lock and not again afterwards: 32 threads that call a
new function at once would trace it 32 times. The gate is one of the hooks that Dynamo calls at the
start of a call. It is installed only while something is compiled (and before the first call), so
that later calls pay nothing. Functions that look into Dynamo's cache by themselves
(:mod:`polyblocks_torch.tracing.cached_calls`) ask the gate before that, since Dynamo takes what one
thread traces for what all of them do.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from polyblocks.isolation import forks


def _nothing() -> None:
    pass


class Gate:
    """The gate of one compiled function.

    Args:
        hooks: Dynamo's list of functions to call at the start of each call; each returns a
            function to call at its end.
    """

    def __init__(self, hooks: list[Callable[[], Any]]) -> None:
        self._hooks = hooks
        self._lock = forks.lock()
        self._open = threading.Event()
        #: The thread that has gone through alone, and may compile; None while the gate is open.
        self.owner: int | None = None
        #: Whether that thread opens the gate when its call is over.
        self.is_called = False
        hooks.append(self.enter)
        _gates.add(self)

    def enter(self) -> Callable[[], None]:
        """The hook: the first thread goes through, the others wait until the gate opens."""
        me = threading.get_ident()
        with self._lock:
            if self.owner is None and not self._open.is_set():
                self._close(me)
                return self.open
            mine = self.owner == me
        if not mine:
            self._open.wait()
        return _nothing

    def is_mine(self) -> bool:
        """Whether this thread has gone through alone."""
        return self.owner == threading.get_ident()

    def wait(self) -> None:
        """Wait until no other thread has gone through alone."""
        while self.owner not in (None, threading.get_ident()):
            self._open.wait()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Run alone: other threads wait, unless the gate is opened before."""
        me = threading.get_ident()
        while True:
            with self._lock:
                mine = self.owner == me
                if mine or self.owner is None:
                    self._close(me)
                    self.is_called |= not mine
                    break
            self._open.wait()
        try:
            yield
        finally:
            if not mine:
                self.open()

    def close(self) -> None:
        """This thread compiles now. Calls that begin from here on wait."""
        with self._lock:
            if self.owner is None:
                self._close(threading.get_ident())

    def open(self) -> None:
        """This thread is done; let all others in."""
        with self._lock:
            if self.owner == threading.get_ident():
                self.owner = None
                self.is_called = False
                self._open.set()
                if self.enter in self._hooks:
                    self._hooks.remove(self.enter)

    def _close(self, owner: int) -> None:
        self.owner = owner
        self._open.clear()
        if self.enter not in self._hooks:
            self._hooks.append(self.enter)

    def _after_fork(self) -> None:
        # The thread that compiles is not in this process and will never open the gate.
        self.owner = None
        self._open = threading.Event()  # a thread may have been in the middle of the old one
        self._open.set()
        self.is_called = False


_gates: weakref.WeakSet[Gate] = weakref.WeakSet()


@forks.in_child
def _open_all() -> None:
    for gate in list(_gates):
        gate._after_fork()


@forks.in_child
def _free_dynamo() -> None:
    """Let a child trace, whatever another thread of its parent was tracing."""
    convert_frame = sys.modules.get("torch._dynamo.convert_frame")
    lock = getattr(convert_frame, "compile_lock", None)
    if lock is not None and not lock._is_owned():
        lock._at_fork_reinit()
