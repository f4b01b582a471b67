"""A rule that all files obey: one test, which names every file that does not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def offenders(paths: Iterable[Path], banned: Callable[[Path], Iterable[object]]) -> list[str]:
    """``file: what is banned`` of each file in which something is; empty if the rule holds."""
    found = ((path, sorted(map(str, banned(path)))) for path in paths)
    return [f"{path.relative_to(ROOT)}: {', '.join(words)}" for path, words in found if words]
