"""Runs the part of a program that depends on constant arguments alone."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from polyblocks.errors import ExecutionError
from polyblocks.runtime import buffers
from polyblocks.runtime.executable import Executable
from polyblocks.runtime.kept.memory import Kept


class Preparer:
    """Fills what a program keeps.

    Attributes:
        inputs: numbers of the program's arguments that are read.
        kept: number of the program's argument that is filled.
        nbytes: its size.

    Args:
        executable: a program.
    """

    def __init__(self, executable: Executable) -> None:
        preparation = executable.preparation
        assert preparation is not None
        manifest = preparation.manifest
        rows: list[dict[str, Any]] = manifest["arguments"]
        self._entry = preparation.entry
        self._sources: list[int | None] = manifest["sources"]
        self._name = manifest.get("name", "main")
        pairs = list(zip(rows, self._sources, strict=True))
        self.inputs = tuple(s for row, s in pairs if row["role"] == "input" and s is not None)
        (self.kept,) = (s for row, s in pairs if row["role"] == "kept" and s is not None)
        (self.nbytes,) = (row["shape"][0] for row in rows if row["role"] == "kept")
        self._workspace = sum(row["shape"][0] for row in rows if row["role"] == "workspace")
        self._pack: Callable[..., bytes] = struct.Struct(f"{len(rows)}Q").pack

    def __call__(self, addresses: Sequence[int], num_threads: int) -> Kept:
        """Run the preparation.

        Args:
            addresses: of :attr:`inputs`, in order.
            num_threads: that it may use.

        Raises:
            MemoryError: there is no memory for the prepared data.
            ExecutionError: the preparation failed.
        """
        kept = Kept(self.nbytes)
        workspace = buffers.workspaces.acquire(self._workspace) if self._workspace else None
        at: dict[int | None, int] = dict(zip(self.inputs, addresses, strict=True))
        at[self.kept] = kept.address
        at[None] = 0 if workspace is None else workspace.address
        code = self._entry(self._pack(*(at[s] for s in self._sources)), num_threads)
        if workspace is not None:
            workspace.release()
        if code:
            raise ExecutionError(f"{self._name}: its preparation returned status {code}")
        return kept
