"""Errors that the simulator finds in a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

#: Every kind of finding.
KINDS = (
    "race",
    "out of bounds",
    "misaligned",
    "unwritten read",
    "unwaited copy",
    "unwaited product",
    "missing fence",
    "wrong barrier",
    "divergent barrier",
    "inactive lane",
    "replicated half",
    "division by zero",
    "trap",
    "step limit",
)


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, at most one per op and kind.

    Attributes:
        kind: one of `KINDS`.
        kernel: name of the kernel.
        op: the op in one line; the ``barrier`` or access that went wrong.
        location: the user's source, e.g. ``model.py:12 (add)``; empty where unknown.
        message: what happened, in one sentence, for the first thread that it happened to.
        block: index (x, y, z) of that thread's block.
        thread: index (x, y, z) of the thread in its block.
        count: how many times it happened in this launch, counted per thread.
    """

    kind: str
    kernel: str
    op: str
    location: str
    message: str
    block: tuple[int, int, int]
    thread: tuple[int, int, int]
    count: int = 1

    def __str__(self) -> str:
        where = f" at {self.location}" if self.location else ""
        times = f" [{self.count} times]" if self.count > 1 else ""
        return (
            f"{self.kind} in {self.kernel}{where}: {self.message} (block {_index(self.block)}, "
            f"thread {_index(self.thread)}){times}\n    {self.op}"
        )


def _index(index: Sequence[int]) -> str:
    return "(" + ", ".join(map(str, index)) + ")"


class Findings:
    """Collects findings of one launch, one per op and kind."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, str], Finding] = {}

    def add_count(self, site: int, kind: str, count: int) -> bool:
        """Count a repetition; False when it is the first of its op and kind."""
        known = self._found.get((site, kind))
        if known is None:
            return False
        self._found[(site, kind)] = replace(known, count=known.count + count)
        return True

    def add(self, site: int, finding: Finding) -> None:
        """Keep the first finding of an op and kind."""
        self._found[(site, finding.kind)] = finding

    def listed(self) -> tuple[Finding, ...]:
        """All, in the order of their first occurrence."""
        return tuple(self._found.values())
