"""Groups whose peers share a process: what their programs are asked, and what they leave.

``python -m bench`` passes such a group to the ``run`` of its module (:data:`bench.groups.SUITES`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markdown import Markdown

from bench import crew, report

Json = dict[str, Any]


@dataclass(frozen=True)
class Request:
    """What the command line asks for.

    Attributes:
        only: parts of the names of cases, comma-separated; empty: all.
        rounds: turns of each peer.
        threads: of each peer.
        results: folder for complete results.
        others: folder for all others.
        before: earlier results that ours are compared with; None: there are none.
    """

    only: str
    rounds: int
    threads: int
    results: Path
    others: Path
    before: Path | None = None


def chosen(only: str, names: Sequence[str]) -> tuple[str, ...]:
    """The names that contain one of the comma-separated parts.

    Raises:
        ValueError: a part is in no name; lists them all.
    """
    parts = [part.strip() for part in only.split(",") if part.strip()]
    for part in parts:
        if not any(part in name for name in names):
            raise ValueError(f"no case contains '{part}'; the cases are {'; '.join(names)}")
    return tuple(name for name in names if not parts or any(part in name for part in parts))


def work(
    module: str,
    arguments: Sequence[str],
    threads: int,
    environment: dict[str, str],
    answer: Path,
    patience_s: float,
    python: Path | str = sys.executable,
) -> tuple[Any, str]:
    """Run a module in a process of its own that writes JSON into a file.

    Args:
        module: with a command line.
        arguments: of it.
        threads: that libraries are told to use.
        environment: additions to this process's.
        answer: the file that it writes, perhaps more than once.
        patience_s: seconds after which it is ended.
        python: interpreter.

    Returns:
        What it wrote last (None: nothing), and how it failed (empty: it did not).
    """
    log, problem = answer.with_suffix(".log"), ""
    with log.open("w") as output:
        try:
            done = subprocess.run(
                [str(python), "-m", module, *arguments],
                cwd=crew.ROOT,
                env=os.environ | crew.thread_variables(threads) | environment,
                stdout=output,
                stderr=output,
                timeout=patience_s,
            )
            if done.returncode:
                said = [line for line in log.read_text(errors="replace").splitlines() if line]
                last = said[-1][:200] if said else "it said nothing"
                problem = f"the process ended with status {done.returncode}; its last words: {last}"
        except subprocess.TimeoutExpired:
            problem = f"it took more than {patience_s:g} s"
    return (json.loads(answer.read_text()) if answer.exists() else None), problem


def publish(results: Json, text: str, folder: Path, ending: str) -> str:
    """Write the JSON and the page, and print the page; their path without the ending."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{report.place(results, folder)}{ending}"
    Path(f"{stem}.json").write_text(json.dumps(results, indent=1, allow_nan=False) + "\n")
    Path(f"{stem}.md").write_text(text)
    console = Console()
    console = console if console.is_terminal else Console(width=200)
    console.print(Markdown(text))
    console.print(f"wrote {stem}.json and .md", highlight=False)
    return stem
