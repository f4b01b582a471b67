"""Writes files so that they are there as a whole or not at all."""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import stat
from pathlib import Path


def write_file(path: Path, data: bytes) -> None:
    """Write a file of the user's, who may have one there already.

    Raises:
        OSError: it cannot be written; what was there is still there.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(data)  # a pipe or a device stays what it is; a folder is refused
        return
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o666
    # A link stays, too: the file that it leads to is another one then.
    place = Path(os.path.realpath(path))
    write_atomically(place, data, place.parent, mode)


def write_atomically(path: Path, data: bytes, folder: Path, mode: int) -> None:
    """Write a file under another name, and rename it when it is complete.

    Args:
        path: its name; whatever has it is replaced.
        data: the contents.
        folder: where the unfinished file lies, on the same file system.
        mode: permissions, before the process's umask.

    Raises:
        OSError: it cannot be written; nothing is left of it.
    """
    unfinished = folder / f".{secrets.token_hex(8)}.tmp"
    try:
        with open(unfinished, "xb", opener=functools.partial(os.open, mode=mode)) as file:
            file.write(data)
        # No fsync: should the machine lose power, the checksums of an artifact tell.
        os.replace(unfinished, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(unfinished)
        raise
