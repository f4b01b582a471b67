"""Dynamo's guards are not timed for its log.

PyTorch times the guards of every frame that it has compiled, once, and before that it clears the
caches of the chip by writing 32 MiB, on fresh pages. For a small function this is a tenth of the
time of its first call, and the number is only seen in a log of Dynamo's guards.
"""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch._dynamo import guards

_NAME = "profile_guard_manager"

_thread = threading.local()


@contextmanager
def guards_untimed() -> Iterator[None]:
    """Let this thread compile frames inside the block without timing their guards.

    They are timed where Dynamo's log shows it.
    """
    _install()
    before = getattr(_thread, "untimed", False)
    _thread.untimed = not _shown()
    try:
        yield
    finally:
        _thread.untimed = before


@functools.cache
def _install() -> None:
    """Ask in PyTorch's function whether to time; other versions of PyTorch have none."""
    original = getattr(guards, _NAME, None)
    if original is None:
        return

    def timed(*args: Any) -> float:
        if getattr(_thread, "untimed", False):
            return 0.0
        microseconds: float = original(*args)
        return microseconds

    setattr(guards, _NAME, timed)


def _shown() -> bool:
    """Whether the time would be seen."""
    return guards.guards_log.isEnabledFor(logging.DEBUG)
