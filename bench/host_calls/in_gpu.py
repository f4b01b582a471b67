"""Calls of GPU programs with a driver that only counts; see :mod:`bench.host_launches`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from bench import host_launches
from bench.host_calls.cases import Case

#: Calls in a round.
NUMBER = 100


def rows(case: Case, folder: Path, rounds: int) -> list[dict[str, Any]]:
    """A row for each way to call it, with its bar."""
    with tempfile.TemporaryDirectory(dir=folder) as where:
        found = list(host_launches.measure(Path(where), rounds, NUMBER))
    return [
        {"case": f"{row.path}: {row.case}", "peer": "launches", "us": row.us, "bar": row.bar}
        for row in found
    ]
