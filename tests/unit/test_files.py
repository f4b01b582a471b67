"""Files are there as a whole or not at all."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from polyblocks.files import write_file


def test_a_file_that_cannot_be_written_stays_what_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.zip"
    write_file(path, b"before")

    def full(*paths: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left on device"):
        write_file(path, b"after")
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == b"before"


def test_permissions_are_those_of_any_file_or_of_the_one_that_was_there(tmp_path: Path) -> None:
    path, other = tmp_path / "a", tmp_path / "b"
    other.touch()
    write_file(path, b"1")
    assert path.stat().st_mode == other.stat().st_mode
    path.chmod(0o600)
    write_file(path, b"2")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_bytes() == b"2"


def test_a_link_stays(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    link, path = tmp_path / "link", tmp_path / "folder" / "a"
    link.symlink_to(path)
    for data in (b"new", b"again"):
        write_file(link, data)
        assert link.is_symlink()
        assert path.read_bytes() == data


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_file(pipe, b"data")
    reader.join()
    assert read == [b"data"]
    assert pipe.is_fifo()


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="Is a directory"):
        write_file(tmp_path, b"data")
