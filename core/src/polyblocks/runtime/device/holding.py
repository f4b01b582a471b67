"""Arrays that must live until a stream has passed a point.

Frameworks whose memory does not follow our stream would give it to other arrays too early.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from polyblocks.isolation import forks

if TYPE_CHECKING:
    from polyblocks.runtime.device.driver import Driver

_held: deque[tuple[Driver, int, Any]] = deque()
_lock = forks.lock()


def hold(driver: Driver, stream: int, things: Any) -> None:
    """Keep ``things`` alive until the work that is on the stream now is done."""
    release()
    _held.append((driver, driver.record(stream), things))


def release() -> None:
    """Let go of what is not needed any more; waits for nothing."""
    if not _lock.acquire(False):
        return  # another thread does it
    try:
        while _held:
            driver, event, _ = _held[0]
            if not driver.has_passed(event):
                return
            driver.destroy_event(event)
            _held.popleft()
    finally:
        _lock.release()


def held_count() -> int:
    """How many calls hold something."""
    return len(_held)
