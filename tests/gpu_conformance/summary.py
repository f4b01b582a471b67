"""What became of the programs, as a table and as Markdown."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

Rows = dict[str, dict[str, dict[str, Any]]]

MEANING = {
    "right": "all kernels ran in the simulator, results right, no finding",
    "fallback": "the framework runs a part or all of it, or, where there is none, it is refused",
    "none": "launches no kernel: is about errors, options or what is not compiled",
    "skipped": "skipped by the test itself",
    "wrong": "results differ, or an error",
    "findings": "the simulator found something",
    "timeout": "took too long",
    "crashed": "the process died",
}
#: What must not be.
BAD = ("wrong", "findings", "timeout", "crashed")


def print_table(rows: Rows) -> None:
    """Print the counts, and each program that is not as it should be."""
    console = Console()
    table = Table(title="programs by architecture")
    table.add_column("outcome")
    for arch in rows:
        table.add_column(arch, justify="right")
    table.add_column("meaning")
    for kind, meaning in MEANING.items():
        table.add_row(kind, *(str(_count(rows[arch], kind)) for arch in rows), meaning)
    console.print(table)
    for arch, tests in rows.items():
        for name, row in tests.items():
            if row["kind"] in BAD:
                line = f"{arch} {row['kind']}: {name}: {row['reason']}"
                console.print(line, markup=False, soft_wrap=True)


def write_markdown(path: Path, rows: Rows, every: int) -> None:
    """Write the counts, by file as well, and lists of what is not right, with reasons.

    Args:
        path: the file.
        rows: what became of each test, by architecture.
        every: only every so many-th test was run.
    """
    part = "" if every == 1 else f"Every {every}th test was run. "
    launches = sum(row.get("launches", 0) for tests in rows.values() for row in tests.values())
    lines = [
        "# Programs on simulated GPUs",
        "",
        f"Written by `make gpu-conformance`: the end-to-end tests with {', '.join(rows)} instead "
        f"of the CPU, {launches} launches in the simulator. Tests marked `cpu` or `large` are left "
        f"out. {part}".rstrip(),
        "",
        "| outcome | " + " | ".join(rows) + " | meaning |",
        "|---|" + "---:|" * len(rows) + "---|",
    ]
    for kind, meaning in MEANING.items():
        counts = " | ".join(str(_count(tests, kind)) for tests in rows.values())
        lines.append(f"| {kind} | {counts} | {meaning} |")
    lines += ["", "## By file", "", "Right, and all that launch kernels or fall back.", ""]
    lines += ["| file | " + " | ".join(rows) + " |", "|---|" + "---:|" * len(rows)]
    files = sorted({_file(name) for tests in rows.values() for name in tests})
    for file in files:
        cells = [_of_file(tests, file) for tests in rows.values()]
        if any(cell != "0 of 0" for cell in cells):
            lines.append(f"| {file} | " + " | ".join(cells) + " |")
    for kind in (*BAD, "fallback"):
        found: dict[tuple[str, str], list[str]] = {}
        for arch, tests in rows.items():
            for name, row in tests.items():
                if row["kind"] == kind:
                    found.setdefault((name, row["reason"]), []).append(arch)
        if not found:
            continue
        lines += ["", f"## {kind}", "", "| program | on | reason |", "|---|---|---|"]
        for (name, reason), archs in sorted(found.items()):
            told = reason.replace("|", "\\|")
            lines.append(f"| {name.removeprefix('tests/')} | {', '.join(archs)} | {told} |")
    path.write_text("\n".join(lines) + "\n")


def _count(tests: dict[str, dict[str, Any]], kind: str) -> int:
    return Counter(row["kind"] for row in tests.values())[kind]


def _file(name: str) -> str:
    return name.split("::")[0].removeprefix("tests/")


def _of_file(tests: dict[str, dict[str, Any]], file: str) -> str:
    kinds = Counter(row["kind"] for name, row in tests.items() if _file(name) == file)
    total = sum(n for kind, n in kinds.items() if kind not in ("none", "skipped"))
    return f"{kinds['right']} of {total}"
