"""Orders to a process of a benchmark, and its answers: lines of JSON, see :mod:`bench.crew`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any, TextIO

Json = dict[str, Any]


def answers() -> TextIO:
    """Where answers go; what libraries print goes to the standard error from now on."""
    file = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return file


def serve(file: TextIO, answer: Callable[[Json], Json]) -> None:
    """Answer each order until the standard input ends."""
    for line in sys.stdin:
        file.write(json.dumps(answer(json.loads(line))) + "\n")
        file.flush()


def in_one_line(error: BaseException) -> str:
    """An error's type and message."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]
