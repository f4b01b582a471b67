"""No search for garbage while Dynamo compiles a frame.

Tracing makes objects by the hundred thousand, and most of them stay: Python looks through all
objects of the process again and again, which takes a sixth of PyTorch's part of a first call. A
process that has imported PyTorch has a million.
"""

from __future__ import annotations

import gc
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from polyblocks.isolation.forks import in_child, lock

_lock = lock()
#: How many blocks each thread is in, by its number.
_paused: Counter[int] = Counter()
_was_enabled = False


@contextmanager
def collection_paused() -> Iterator[None]:
    """No garbage collection inside the block, and in those of other threads meanwhile.

    Behind the last of them it is as it was before the first.
    """
    global _was_enabled
    own = threading.get_ident()
    with _lock:
        if not _paused:
            _was_enabled = gc.isenabled()
            gc.disable()
        _paused[own] += 1
    try:
        yield
    finally:
        with _lock:
            _paused[own] -= 1
            if not _paused[own]:
                del _paused[own]
            _go_on()


@in_child
def _forget_others() -> None:
    """The blocks of threads that a forked process does not have never end there."""
    if not _paused:
        return
    own = threading.get_ident()
    for thread in set(_paused) - {own}:
        del _paused[thread]
    _go_on()


def _go_on() -> None:
    if not _paused and _was_enabled:
        gc.enable()
