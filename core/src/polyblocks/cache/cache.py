"""The on-disk cache of artifacts: one per user, shared by many processes and threads.

An entry appears by an atomic rename, so a killed process leaves at most a temporary file, which
is swept later. Entries are checked when read; damaged ones are compiled again. A cache that cannot
be used never fails a compilation: that is logged once, and everything is compiled.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import math
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from polyblocks.artifact import Artifact
from polyblocks.cache import key_lock
from polyblocks.cache.toolchain import toolchain_versions
from polyblocks.errors import ArtifactError
from polyblocks.files import write_atomically
from polyblocks.isolation import forks

__all__ = ["BadEntry", "Cache", "Entry", "cache_key", "default_cache", "toolchain_versions"]

logger = logging.getLogger(__name__)

DEFAULT_MAX_BYTES = 2 << 30
#: Temporary files and lock files older than this were left by processes that are gone.
STALE_S = 3600.0

_SUFFIX = ".pbk"
_KEY = re.compile(r"[0-9a-f]{64}")
_NOFOLLOW, _NONBLOCK = getattr(os, "O_NOFOLLOW", 0), getattr(os, "O_NONBLOCK", 0)
_LOCKS, _TEMPORARY = "locks", "tmp"
#: Eviction goes down to this share, so that it does not run at every put.
_EVICT_TO = 0.9
#: Share of the limit that a process writes before it looks at all entries again: other processes
#: write, too, and to look takes a system call for each.
_UNSEEN = 1 / 64


def cache_key(parts: Iterable[bytes | str]) -> str:
    """SHA-256, in hexadecimal, over the parts; the borders between parts count."""
    digest = hashlib.sha256(b"polyblocks-1")
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


@dataclass(frozen=True)
class Entry:
    """One stored artifact.

    Attributes:
        key: its cache key.
        path: its file.
        size: bytes.
        used: when it was last written or read, seconds since the epoch.
    """

    key: str
    path: Path
    size: int
    used: float

    def read(self) -> Artifact:
        """The artifact; does not count as a use.

        Raises:
            ArtifactError: it is damaged, gone, or not this user's.
        """
        try:
            return Artifact.from_bytes(_read_own(self.path))
        except OSError as error:
            raise ArtifactError(f"the cache entry cannot be read: {error}") from error


@dataclass(frozen=True)
class BadEntry:
    """A file in the cache that is no good entry, and why."""

    path: Path
    reason: str


class Cache:
    """A folder of artifacts by key.

    Args:
        root: the folder; default ``POLYBLOCKS_CACHE_DIR``, else the user's cache folder.
        max_bytes: when the entries take more, those unused for longest go; default
            ``POLYBLOCKS_CACHE_MAX_BYTES``, else 2 GiB.
    """

    def __init__(
        self, root: str | os.PathLike[str] | None = None, max_bytes: int | None = None
    ) -> None:
        self.root = Path(root) if root is not None else _default_root()
        self.max_bytes = max_bytes if max_bytes is not None else _default_max_bytes()
        #: Bytes written since all entries were seen.
        self._unseen = math.inf

    def get(self, key: str) -> Artifact | None:
        """The artifact stored under ``key``, or None.

        A damaged entry is removed. Never raises for what it finds on disk.
        """
        path = self._path(key)
        if not self._trusted(create=False):
            return None
        try:
            artifact = Artifact.from_bytes(_read_own(path))
        except FileNotFoundError:
            return None
        except (ArtifactError, OSError) as error:
            logger.info("cache entry %s is compiled again: %s", key[:16], error)
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # used now
        return artifact

    def put(self, key: str, artifact: Artifact) -> None:
        """Store ``artifact`` under ``key``; a cache that cannot take it is logged, not raised.

        Raises:
            ArtifactError: the artifact itself breaks the schema.
        """
        path = self._path(key)
        data = artifact.to_bytes()
        if len(data) > self.max_bytes or not self._trusted(create=True):
            return
        try:
            temporary = self.root / _TEMPORARY
            for folder in (temporary, path.parent):
                folder.mkdir(mode=0o700, exist_ok=True)
            write_atomically(path, data, temporary, 0o600)
            self._unseen += len(data)
            if self._unseen > self.max_bytes * _UNSEEN:
                self._unseen = 0
                self._tidy(keep=path)
        except OSError as error:
            _warn_once(
                f"{self.root} write",
                f"the compile cache {self.root} cannot be written ({error.strerror or error}); "
                "compiling without it. POLYBLOCKS_CACHE_DIR names another folder",
            )

    @contextlib.contextmanager
    def lock(self, key: str, timeout_s: float = 900.0) -> Iterator[bool]:
        """Hold ``key`` among all threads and processes; not reentrant.

        It is gone when its process is, also by SIGKILL, and is not inherited by forked children.

        Yields:
            False when another holder did not let go within ``timeout_s``; the block runs anyway.
        """
        self._path(key)
        folder = self.root / _LOCKS if self._trusted(create=True) else None
        if folder is not None:
            try:
                folder.mkdir(mode=0o700, exist_ok=True)
            except OSError:
                folder = None
        with key_lock.hold(folder, key, timeout_s) as held:
            yield held

    def entries(self) -> list[Entry]:
        """All entries, the last used first."""
        found = []
        if self._trusted(create=False):
            for path in self.root.glob(f"??/*{_SUFFIX}"):
                with contextlib.suppress(OSError):  # removed meanwhile
                    status = path.lstat()
                    found.append(Entry(path.stem, path, status.st_size, status.st_mtime))
        return sorted(found, key=lambda e: (-e.used, e.key))

    def clear(self) -> int:
        """Remove all entries and leftovers; returns the number of entries removed."""
        removed = 0
        for entry in self.entries():
            with contextlib.suppress(OSError):
                entry.path.unlink()
                removed += 1
        if self._trusted(create=False):
            # Not younger ones: another process may be about to rename or to hold them.
            self._sweep(older_than_s=60.0)
            with contextlib.suppress(OSError):
                for folder in self.root.glob("??"):
                    with contextlib.suppress(OSError):
                        folder.rmdir()
        return removed

    def verify(self) -> list[BadEntry]:
        """Read and check every entry; returns the bad ones, and removes nothing."""
        bad = []
        for entry in self.entries():
            if not _KEY.fullmatch(entry.key) or entry.path.parent.name != entry.key[:2]:
                bad.append(BadEntry(entry.path, "its name is not a cache key"))
                continue
            try:
                entry.read()
            except ArtifactError as error:
                if os.path.lexists(entry.path):
                    bad.append(BadEntry(entry.path, str(error)))
        return bad

    def _path(self, key: str) -> Path:
        if not _KEY.fullmatch(key):
            raise ValueError(f"a cache key is 64 hexadecimal digits, not {key!r:.80}")
        return self.root / key[:2] / f"{key}{_SUFFIX}"

    def _trusted(self, *, create: bool) -> bool:
        """Whether the folder is there, is this user's, and no other user can write to it."""
        try:
            if create:
                self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = self.root.stat()
        except FileNotFoundError:
            return False
        except OSError as error:
            _warn_once(
                f"{self.root} make",
                f"the compile cache {self.root} cannot be used ({error.strerror or error}); "
                "compiling without it. POLYBLOCKS_CACHE_DIR names another folder",
            )
            return False
        problem = _distrust(status)
        if problem:
            _warn_once(
                f"{self.root} trust",
                f"the compile cache {self.root} {problem} and is not used; chmod 700 a folder of "
                "your own and name it in POLYBLOCKS_CACHE_DIR",
            )
        return not problem

    def _tidy(self, keep: Path) -> None:
        self._sweep(STALE_S)
        entries = self.entries()
        total = sum(entry.size for entry in entries)
        if total <= self.max_bytes:
            return
        for entry in reversed(entries):
            if entry.path != keep:
                with contextlib.suppress(OSError):
                    entry.path.unlink()
                total -= entry.size
            if total <= self.max_bytes * _EVICT_TO:
                return

    def _sweep(self, older_than_s: float) -> None:
        key_lock.sweep(self.root / _LOCKS, older_than_s)
        limit = time.time() - older_than_s
        with contextlib.suppress(OSError):
            for path in (self.root / _TEMPORARY).iterdir():
                with contextlib.suppress(OSError):
                    if path.lstat().st_mtime < limit:
                        path.unlink()


_default: tuple[tuple[str | None, str | None], Cache] | None = None


def default_cache() -> Cache:
    """The cache that the environment names; the same object while that does not change."""
    global _default
    requested = (
        os.environ.get("POLYBLOCKS_CACHE_DIR"),
        os.environ.get("POLYBLOCKS_CACHE_MAX_BYTES"),
    )
    if _default is None or _default[0] != requested:
        _default = (requested, Cache())
    return _default[1]


def _default_root() -> Path:
    requested = os.environ.get("POLYBLOCKS_CACHE_DIR")
    if requested:
        return Path(requested).expanduser().absolute()
    import platformdirs

    return platformdirs.user_cache_path("polyblocks", appauthor=False)


def _default_max_bytes() -> int:
    requested = os.environ.get("POLYBLOCKS_CACHE_MAX_BYTES", "")
    if not requested:
        return DEFAULT_MAX_BYTES
    if not requested.isdecimal():
        _warn_once(
            f"max {requested}",
            f"POLYBLOCKS_CACHE_MAX_BYTES must be a number of bytes, not {requested!r}; "
            f"using {DEFAULT_MAX_BYTES}",
        )
        return DEFAULT_MAX_BYTES
    return int(requested)


def _distrust(status: os.stat_result) -> str:
    """Why what ``status`` describes cannot be trusted; empty if it can."""
    if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
        return f"belongs to another user (uid {status.st_uid})"
    if os.name == "posix" and status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "can be written by others"
    return ""


def _read_own(path: Path) -> bytes:
    """The content of a regular file of this user; a link is not followed."""
    # Not blocking: a pipe in an entry's place would wait for a writer.
    descriptor = os.open(path, os.O_RDONLY | _NOFOLLOW | _NONBLOCK)
    try:
        status = os.fstat(descriptor)
        problem = "is not a file" if not stat.S_ISREG(status.st_mode) else _distrust(status)
        if problem:
            raise ArtifactError(f"the cache entry {problem}")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


_warned: set[str] = set()
_warned_lock = forks.lock()


def _warn_once(what: str, message: str) -> None:
    with _warned_lock:
        if what in _warned:
            return
        _warned.add(what)
    logger.warning("%s", message)
