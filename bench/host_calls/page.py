"""The page of the group ``calls``."""

from __future__ import annotations

from typing import Any

from bench.cells import NONE, table
from bench.host_calls.bars import CHIP, OURS, bars, slower

Json = dict[str, Any]

#: The other peers, in the order of the tables.
RIVALS = (
    "eager", "NumPy", "Inductor", "ONNX Runtime", "jax.jit", "jax.jit, compiled ahead",
    "tf.function", "XLA",
)  # fmt: skip

INTRODUCTION = (
    "CPU microseconds of the calling thread per call, on arrays of 16 elements; the least of "
    "{rounds} rounds, in which the peers of a framework take turns in one process (ONNX Runtime "
    "and C in their own). *decorated* is `polyblocks_jit_…`, *loaded* is "
    "`polyblocks.load(polyblocks.aot(…))`, with weights that are bound by name where the case has "
    "some; *library* is the function of `polyblocks.write_library`, called from C. ONNX Runtime's "
    "arrays are bound once."
)


def markdown(results: Json, before: list[Json] | None = None) -> str:
    """A table for each framework, where a peer is faster, the bars, and what did not run."""
    rows = results["rows"]
    lines = [f"# What the host spends on a call, {results['date']}, {results['machine']['cpu']}"]
    lines += ["", INTRODUCTION.format(rounds=results["rounds"])]
    for framework in dict.fromkeys(row["framework"] for row in rows):
        found = [row for row in rows if row["framework"] == framework]
        lines += ["", f"## {framework}", "", *times(found)]
    lines += ["", "## Slower than a peer", ""]
    lines += [f"- {line}" for line in slower(rows)] or ["Nowhere."]
    lines += ["", "## Bars", "", f"Those in microseconds are for {CHIP}.", ""]
    lines += verdicts(results, before or [])
    problems = [row for row in rows if "problem" in row]
    if problems:
        lines += ["", "## Not run", ""]
    for row in problems:
        what = ", ".join(filter(None, (row["framework"], row["case"], row["peer"])))
        lines.append(f"- {what}: {row['problem']}")
    return "\n".join(lines) + "\n"


def times(rows: list[Json]) -> list[str]:
    """One framework's table; the least of a row is bold."""
    peers = [p for p in (*OURS, *RIVALS) if any(row["peer"] == p and "us" in row for row in rows)]
    lines = []
    for case in dict.fromkeys(row["case"] for row in rows if row["case"]):
        us = {row["peer"]: row["us"] for row in rows if row["case"] == case and "us" in row}
        least = min(us.values(), default=None)
        cells = []
        for peer in peers:
            cell = microseconds(us.get(peer))
            cells.append(f"**{cell}**" if len(us) > 1 and us.get(peer) == least else cell)
        lines.append([case, *cells])
    return table(["case", *peers], lines)


def verdicts(results: Json, before: list[Json]) -> list[str]:
    """The table of bars."""
    lines = [
        [
            f"{bar.framework}, {bar.case}, {bar.peer}",
            microseconds(bar.us),
            microseconds(bar.most) + (f" ({bar.why})" if bar.why else ""),
            microseconds(bar.floor),
            bar.verdict,
        ]
        for bar in bars(results["rows"], before)
    ]
    return table(["call", "µs", "at most", "floor", "verdict"], lines)


def microseconds(us: float | None) -> str:
    """Three digits, or all before the point."""
    if us is None:
        return NONE
    return f"{us:.0f}" if us >= 100 else f"{us:.3g}"
