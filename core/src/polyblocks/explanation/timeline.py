"""The time line of a program: its launches in order, and which of them come again and again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]

#: Launches of a sequence that is looked for, at most.
_LONGEST = 64


@dataclass(frozen=True)
class Repeated:
    """Launches that follow each other several times.

    Attributes:
        times: how often.
        rows: the first time.
    """

    times: int
    rows: tuple[Row, ...]


def timeline(launches: Sequence[str], kernels: Sequence[Row]) -> list[Row]:
    """The launches of a call: ``kernel``, ``seconds`` and ``start_seconds``.

    Gaps between launches are left out. That of one launch is empty, and so is one with kernels
    whose seconds are unknown.

    Args:
        launches: names of kernels, in order.
        kernels: of a document, with the seconds of all calls of each.
    """
    seconds = {k["name"]: (k["seconds"], k["calls"]) for k in kernels}
    found: list[Row] = []
    start = 0.0
    for name in launches:
        total, calls = seconds.get(name, (None, 1))
        if total is None:
            return []
        found.append({"kernel": name, "start_seconds": start, "seconds": total / calls})
        start += total / calls
    return found if len(found) > 1 else []


def repeated(rows: Sequence[Row]) -> list[Repeated]:
    """The rows of a time line, those of layers that are alike once.

    Of the sequences that begin somewhere the one that covers most is taken, of equal ones the
    shortest.
    """
    names = [row["kernel"] for row in rows]
    found: list[Repeated] = []
    at = 0
    while at < len(names):
        best = (1, 1)
        for length in range(1, min(_LONGEST, (len(names) - at) // 2) + 1):
            times = _times(names, at, length)
            if times > 1 and times * length > best[0] * best[1]:
                best = (times, length)
        times, length = best
        found.append(Repeated(times, tuple(rows[at : at + length])))
        at += times * length
    return found


def _times(names: Sequence[str], at: int, length: int) -> int:
    first, times = names[at : at + length], 1
    while names[at + times * length : at + (times + 1) * length] == first:
        times += 1
    return times
