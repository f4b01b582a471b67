"""``make acceptance-users``: what users of the three frameworks were promised, a row each.

Runs the tests of this folder, the slow ones as well, and measures what is a matter of time. Exit
status 1 if a row does not hold.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
OPINFO = FOLDER.parent / "opinfo"
TYPES = ("float32", "float16", "bfloat16", "float64", "int64", "complex64")


@dataclass(frozen=True)
class Row:
    """One line of the list: what, whether it holds, and what was seen."""

    what: str
    holds: bool
    seen: str

    def __str__(self) -> str:
        return f"{'ok  ' if self.holds else 'NO  '}{self.what:<44} {self.seen}"


def tests() -> Iterator[Row]:
    """A row for each file of tests."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.xml"
        processes = os.environ.get("TEST_PROCESSES", "2")
        subprocess.run(
            [
                *(sys.executable, str(FOLDER.parent / "run.py"), str(FOLDER)),
                *(f"--processes={processes}", f"--junitxml={results}"),
            ],
            check=False,
        )
        found: dict[str, Counter[str]] = {}
        for case in ElementTree.parse(results).iter("testcase"):
            file = case.get("classname", "").split(".")[-1]
            outcomes = {child.tag for child in case} & {"failure", "error", "skipped"}
            found.setdefault(file, Counter())[min(outcomes, default="passed")] += 1
    for path in sorted(FOLDER.glob("test_*.py")):
        counts = found.get(path.stem, Counter())
        holds = set(counts) == {"passed"}
        seen = ", ".join(f"{count} {what}" for what, count in sorted(counts.items())) or "no test"
        yield Row(path.stem.removeprefix("test_").replace("_", " "), holds, seen)


def operators() -> Iterator[Row]:
    """The committed tables of ``make opinfo``."""
    for name in TYPES:
        path = OPINFO / ("results.md" if name == "float32" else f"results-{name}.md")
        what = f"operators of {name}"
        if not path.is_file():
            yield Row(what, False, f"no {path.name}: make opinfo OPINFO_ARGS='--dtype {name}'")
            continue
        counts = dict(re.findall(r"^\| (\w+) \| (\d+) \|", path.read_text(), re.MULTILINE))
        bad = sum(int(counts.get(outcome, 0)) for outcome in ("wrong", "crashed"))
        seen = ", ".join(f"{counts.get(n, 0)} {n}" for n in ("compiled", "fallback", "wrong"))
        yield Row(what, bad == 0, f"{seen}, {counts.get('crashed', 0)} crashed")


def measured() -> Iterator[Row]:
    """What is a matter of time; in a process of its own, that nothing else warms."""
    command = [sys.executable, str(FOLDER / "recurrent_times.py")]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    lines = [line.split("\t") for line in done.stdout.splitlines() if "\t" in line]
    if done.returncode or not lines:
        yield Row("times of LSTM", False, (done.stderr.strip().splitlines() or ["nothing"])[-1])
    for what, holds, seen in lines:
        yield Row(what, holds == "True", seen)


def main() -> int:
    """Print the rows."""
    rows = []
    for part in (measured, operators, tests):
        for row in part():
            rows.append(row)
            print(row, flush=True)
    missing = [row for row in rows if not row.holds]
    print(f"{len(rows) - len(missing)} of {len(rows)} rows hold")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
