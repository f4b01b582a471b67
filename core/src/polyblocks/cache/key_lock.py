"""One holder of a key at a time, among all threads and processes of a user.

The lock among processes is ``flock`` on a file: it dies with its process, whatever kills that.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from polyblocks.isolation import forks

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # no such locks on this system: threads are still kept apart
    fcntl = None

logger = logging.getLogger(__name__)

_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.0005, 0.02


class _ThreadLock:
    """A lock with the number of threads that hold it or wait for it."""

    __slots__ = ("lock", "users")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0


#: Guards the first of the two below; never held while waiting.
_guard = forks.lock()
_thread_locks: dict[tuple[str, str], _ThreadLock] = {}
#: Open lock files of this process; changed while nothing can fork.
_descriptors: set[int] = set()


@contextlib.contextmanager
def hold(folder: Path | None, key: str, timeout_s: float = 900.0) -> Iterator[bool]:
    """Hold ``key`` inside the block; waiting threads release the GIL.

    Args:
        folder: where the lock files lie; it exists. None: only among threads of this process.
        key: a file name.
        timeout_s: how long to wait for another holder, which may have been stopped.

    Yields:
        True, or False after the timeout: the block runs all the same, at the price of doing work
        twice.
    """
    deadline = time.monotonic() + timeout_s
    name = (str(folder), key)
    with _guard:
        entry = _thread_locks.setdefault(name, _ThreadLock())
        entry.users += 1
    got = False
    try:
        got = entry.lock.acquire(timeout=timeout_s)
        with _hold_file(folder, key, deadline) if got else contextlib.nullcontext(False) as held:
            if not held:
                logger.warning("no lock on %s after %g s; going on without", key[:16], timeout_s)
            yield held
    finally:
        if got:
            entry.lock.release()
        with _guard:
            entry.users -= 1
            if entry.users == 0:
                _thread_locks.pop(name, None)


def sweep(folder: Path, older_than_s: float) -> None:
    """Remove lock files that killed processes left behind."""
    if fcntl is None:
        return
    limit = time.time() - older_than_s
    with contextlib.suppress(OSError):
        for path in list(folder.iterdir()):
            with contextlib.suppress(OSError):
                if path.stat().st_mtime < limit:
                    descriptor = _try_lock(path)
                    if descriptor is not None:
                        _release(path, descriptor)


@contextlib.contextmanager
def _hold_file(folder: Path | None, key: str, deadline: float) -> Iterator[bool]:
    if folder is None or fcntl is None:
        yield True
        return
    path = folder / key
    wait = _FIRST_WAIT_S
    try:
        # Tries in turn, not a blocking call: a holder that was stopped must not stop us.
        while (descriptor := _try_lock(path)) is None:
            if time.monotonic() > deadline:
                break
            time.sleep(wait)
            wait = min(wait * 1.5, _LONGEST_WAIT_S)
    except OSError as error:
        # A folder that cannot be written, or a file system without locks.
        logger.debug("no lock file %s: %s", path, error)
        yield True
        return
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            _release(path, descriptor)


def _try_lock(path: Path) -> int | None:
    """The descriptor of the locked file, or None while another process has it."""
    assert fcntl is not None
    while True:
        with forks.fork_lock:  # a child that did not know of the file would share the lock
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            _descriptors.add(descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            _close(descriptor)
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                return None
            raise
        # The previous holder removed its file. A lock on that file guards nothing; the file that
        # bears the name now is the lock.
        try:
            now = os.stat(path)
        except FileNotFoundError:
            now = None
        if now is not None and os.path.samestat(now, os.fstat(descriptor)):
            return descriptor
        _close(descriptor)


def _release(path: Path, descriptor: int) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
    _close(descriptor)


def _close(descriptor: int) -> None:
    with forks.fork_lock:
        if descriptor in _descriptors:
            _descriptors.remove(descriptor)
            os.close(descriptor)


@forks.in_child
def _after_fork() -> None:
    # The lock belongs to the open file, which a fork shares: were the parent killed, a child
    # that still had it open would hold the lock on.
    for descriptor in _descriptors:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    _descriptors.clear()
    _thread_locks.clear()
