"""The page of the group ``cliffs``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.cells import NONE, milliseconds, number, table
from bench.cliffs.case import SIZES
from bench.cliffs.table import (
    BAR,
    COMPILE_BAR_S,
    COMPILER,
    FACTORIZATION_BAR_S,
    OURS,
    compile_bar,
)
from bench.page import BUSY

Json = dict[str, Any]

#: Rows whose ratio is below are listed.
LISTED = 1.3


def title(row: Json) -> str:
    """The operation and the size of its operands."""
    return f"{row['framework']}: {row['case']} ({row['size']})"


def markdown(results: Json) -> str:
    """The means, the slow rows, those that take long to compile, and what did not compile."""
    machine, rows = results["machine"], results["rows"]
    lines = [f"# Single operations, {results['date']}, {machine['cpu']}", ""]
    if (results["busy"] or 0) > BUSY:
        lines += ["**The machine was busy with other work: do not trust these numbers.**", ""]
    sizes = ", ".join(f"{name}: {count:,}" for name, count in SIZES.items())
    lines += [
        f"{machine['threads']} threads; elements of the operands, about: {sizes}. A ratio is the "
        "time of the fastest of the framework and its compiler over ours: above 1, ours is faster. "
        "The picture beside this page has all rows, the JSON their numbers.",
        "",
    ]
    for framework, compiler in COMPILER.items():
        there = [row for row in rows if row["framework"] == framework]
        if there and not any(compiler in row["peers"] for row in there):
            lines += [f"{compiler} was not asked for any of {framework}'s rows.", ""]
    heads = ["", "rows", "geometric mean", f"below {BAR:.2f}", "refused", "wrong",
             "compile too long"]  # fmt: skip
    cells = [
        [
            entry["framework"] or "all",
            str(entry["rows"]),
            number(entry["geomean"], "×"),
            *(str(entry[key]) for key in ("short", "refused", "wrong", "slow")),
        ]
        for entry in results["summary"]
    ]
    lines += table(heads, cells)
    lines += ["", f"## Less than {LISTED} times as fast as the best other", "", *_slow(rows)]
    lines += ["", f"## Compiled for longer than {COMPILE_BAR_S:g} s", ""]
    lines += [
        f"A first call less a later one; factorizations for longer than {FACTORIZATION_BAR_S:g} s.",
        "",
        *_compiling(rows),
    ]
    refused = sorted({f"{title(row)}: {row['peers'][OURS]['problem']}" for row in rows
                      if "problem" in row["peers"][OURS]})  # fmt: skip
    lines += ["", "## Not compiled", "", *([f"- {line}" for line in refused] or ["Nothing."])]
    wrong = [title(row) for row in rows if row["peers"][OURS].get("correct") is False]
    lines += ["", "## Wrong", "", *([f"- {line}" for line in wrong] or ["Nothing."])]
    return "\n".join(lines) + "\n"


def _slow(rows: Sequence[Json]) -> list[str]:
    slow = [row for row in rows if row["ratio"] is not None and row["ratio"] < LISTED]
    cells = []
    for row in sorted(slow, key=lambda row: row["ratio"]):
        ours = row["peers"][OURS]
        cells.append(
            [
                title(row),
                number(row["ratio"]),
                row["best"],
                milliseconds(row["peers"][row["best"]]["minimum"]),
                milliseconds(ours["minimum"]),
                milliseconds(ours.get("predicted")),
                str(ours.get("kernels", NONE)),
            ]
        )
    heads = ["operation", "ratio", "best other", "its ms", "ours", "predicted", "kernels"]
    return table(heads, cells) if cells else ["Nothing."]


def _compiling(rows: Sequence[Json]) -> list[str]:
    seconds = [
        (row["peers"][OURS].get("compile", 0.0), title(row), compile_bar(row["factorization"]))
        for row in rows
    ]
    slow = sorted((one for one in seconds if one[0] > one[2]), reverse=True)
    cells = [[name, number(taken)] for taken, name, _ in slow]
    return table(["operation", "s"], cells) if cells else ["Nothing."]
