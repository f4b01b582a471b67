"""Forks of the user's process: no lock of ours holds up a fork for good, nor a child."""

from __future__ import annotations

import gc
import importlib
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from polyblocks.isolation import forks
from polyblocks.runtime.buffers import BufferPool

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


def exit_status(check: Callable[[], bool]) -> int:
    """What a child leaves with: 0 if ``check`` holds there."""
    pid = os.fork()
    if pid == 0:
        status = 2  # it raised
        try:
            status = 0 if check() else 1
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class Holder:
    """A thread that is inside of a context until the end of the block."""

    def __init__(self, context: Any) -> None:
        self._entered, self._leave = threading.Event(), threading.Event()

        def hold() -> None:
            with context:
                self._entered.set()
                self._leave.wait(20)

        self._thread = threading.Thread(target=hold)

    def __enter__(self) -> Holder:
        self._thread.start()
        assert self._entered.wait(10)
        return self

    def __exit__(self, *error: object) -> None:
        self.let_go()
        self._thread.join()

    def let_go(self) -> None:
        self._leave.set()


@pytest.mark.parametrize("make", [forks.lock, forks.rlock])
def test_a_child_finds_the_locks_of_other_threads_free(make):
    lock = make()
    with Holder(lock):
        assert exit_status(lambda: lock.acquire(timeout=5)) == 0
        assert not lock.acquire(timeout=0.01)


def test_a_child_goes_on_inside_a_reentrant_lock_of_its_own_thread():
    lock = forks.rlock()

    def check() -> bool:
        with lock:
            held = lock._is_owned()
        lock.release()
        return held and not lock._is_owned()

    with lock:
        assert exit_status(check) == 0
        assert lock._is_owned()


def test_locks_die_with_what_they_are_of():
    gc.collect()
    before = len(forks._locks)
    locks = [forks.lock() for _ in range(10)]
    assert len(forks._locks) == before + 10
    del locks
    gc.collect()
    assert len(forks._locks) == before


def test_a_fork_waits_for_what_cannot_be_put_right():
    with Holder(forks.fork_lock) as holder:
        done: list[int] = []
        forking = threading.Thread(target=lambda: done.append(exit_status(lambda: True)))
        forking.start()
        forking.join(0.2)
        assert forking.is_alive()
        holder.let_go()
        forking.join(10)
    assert done == [0]


def test_a_thread_may_fork_while_nothing_else_may():
    with forks.fork_lock:
        assert exit_status(lambda: forks.fork_lock._is_owned()) == 0
        assert forks.fork_lock._is_owned()
    assert not forks.fork_lock._is_owned()


def test_functions_run_in_the_child_alone_with_free_locks():
    ran: list[bool] = []
    lock = forks.lock()
    with Holder(lock):
        forks.in_child(lambda: ran.append(lock.acquire(timeout=5)))
        assert exit_status(lambda: ran == [True] and forks.is_child()) == 0
    assert ran == []


def test_a_child_imports_what_another_thread_was_importing(tmp_path, monkeypatch):
    (tmp_path / "imports_slowly.py").write_text(
        "import sys, time\n"
        "begun = True\n"
        "for _ in range(500):\n"
        "    if hasattr(sys, 'imports_slowly_may_end'): break\n"
        "    time.sleep(0.01)\n"
        "done = True\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    importing = threading.Thread(target=lambda: importlib.import_module("imports_slowly"))
    importing.start()
    while not hasattr(sys.modules.get("imports_slowly"), "begun"):
        time.sleep(0.001)

    def check() -> bool:
        sys.imports_slowly_may_end = True  # type: ignore[attr-defined]
        return bool(importlib.import_module("imports_slowly").done)

    try:
        assert exit_status(check) == 0
    finally:
        monkeypatch.setattr(sys, "imports_slowly_may_end", True, raising=False)
        importing.join()
        sys.modules.pop("imports_slowly")


#: What another thread may be in the middle of: what it has changed of the lists of a pool, whose
#: only block has this address and size.
HALF_DONE: dict[str, Callable[[BufferPool, int, int], object]] = {
    "being handed out": lambda pool, address, size: pool._idle[size].remove(address),
    "being sorted in": lambda pool, address, size: pool._idle_since.pop(address),
    "on two lists": lambda pool, address, size: pool._returned.append(address),
    "being unmapped": lambda pool, address, size: pool._mapped.pop(address),
}


@pytest.mark.parametrize("state", HALF_DONE)
def test_a_pool_is_consistent_in_a_child_wherever_a_thread_was_in_it(state):
    pool = BufferPool(max_idle_bytes=64 << 20)
    pool.acquire(1 << 20)
    [(address, size)] = pool._idle_since.items()
    HALF_DONE[state](pool, address, size)

    def check() -> bool:
        is_idle = pool.idle_bytes == size
        again = [pool.acquire(1 << 20) for _ in range(3)]
        addresses = {each.address for each in again}
        is_used = address in addresses
        return len(addresses) == 3 and is_used == is_idle == (state != "being unmapped")

    assert exit_status(check) == 0


#: Python 3.12 and newer warn of forks beside threads, which are what is tested.
THREADS_THAT_FORK = """
import os, threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)
from polyblocks.cache import key_lock
from polyblocks.runtime import buffers
from pathlib import Path

folder = Path({folder!r})
bad = []

def fork():
    for _ in range(30):
        pid = os.fork()
        if pid == 0:
            with key_lock.hold(folder, "key", 20) as held:
                mine = buffers.outputs.acquire(2 << 20)
            os._exit(0 if held else 1)
        if os.waitpid(pid, 0)[1]:
            bad.append(pid)

threads = [threading.Thread(target=fork) for _ in range(4)]
for thread in threads:
    thread.start()
while any(thread.is_alive() for thread in threads):
    buffers.outputs.acquire(3 << 20)
    with key_lock.hold(folder, "other", 20):
        pass
print(bad)
"""


def test_four_threads_fork_at_once(run_python, tmp_path):
    done = run_python(THREADS_THAT_FORK.format(folder=str(tmp_path)), limit=60)
    assert (done.stdout, done.stderr) == ("[]\n", "")
