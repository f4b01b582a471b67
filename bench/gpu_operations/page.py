"""The sweep as a page of Markdown."""

from __future__ import annotations

from math import inf
from typing import Any

from bench.cells import NONE, table
from bench.gpu_operations.reasons import reason

Json = dict[str, Any]

#: What a predicted time may be over the floor.
BAR = 1.5


def ratio(row: Json) -> float | None:
    """The predicted time over the floor."""
    return row["predicted"] / row["floor"] if row.get("predicted") else None


def markdown(results: Json) -> str:
    """The rows that exceed the bar first, then what uses the stack, fails or is not predicted."""
    rows = sorted(results["rows"], key=lambda row: -(ratio(row) or inf))
    ratios = [(row, ratio(row)) for row in rows]
    over = [row for row, found in ratios if found is not None and found > BAR]
    good = sum(found is not None and found <= BAR for _, found in ratios)
    stacks = [row for row in rows if _private(row)]
    unexplained = [row for row in over if reason(row["name"]) is None]
    lines = [
        f"# {results['date']}, predicted for {results['arch']}",
        "",
        f"{len(rows)} operations; {good} are predicted at {BAR} times the floor or less, "
        f"{len(over)} at more, {len(unexplained)} of these without a reason below; {len(stacks)} "
        "have kernels with a stack or spills.",
        "",
        *_reasons(over),
        "## Operations",
        "",
        *_table(rows),
    ]
    return "\n".join(lines) + "\n"


def _reasons(over: list[Json]) -> list[str]:
    """The reasons, with the rows that have each, the worst first."""
    of_reason: dict[str, list[Json]] = {}
    for row in over:
        if (text := reason(row["name"])) is not None:
            of_reason.setdefault(text, []).append(row)
    if not of_reason:
        return []
    cells = [
        [text, str(len(rows)), "; ".join(f"{row['name']} {ratio(row):.2f}" for row in rows)]
        for text, rows in of_reason.items()
    ]
    return ["## Reasons", "", *table(["reason", "rows", "which"], cells), ""]


def _table(rows: list[Json]) -> list[str]:
    heads = ["operation", "floor, µs", "predicted", "ratio", "kernels", "stack", "the longest"]
    return table(heads, [_cells(row) for row in rows])


def _cells(row: Json) -> list[str]:
    if "problem" in row:
        return [row["name"], NONE, NONE, NONE, NONE, NONE, row["problem"].replace("|", "/")[:100]]
    found = ratio(row)
    return [
        row["name"],
        f"{row['floor'] * 1e6:.1f}",
        NONE if row["predicted"] is None else f"{row['predicted'] * 1e6:.1f}",
        NONE if found is None else f"{found:.2f}",
        str(sum(kernel["calls"] for kernel in row["kernels"])),
        str(_private(row)),
        _longest(row),
    ]


def _longest(row: Json) -> str:
    if not row["kernels"]:
        return NONE
    kernel = max(row["kernels"], key=lambda k: inf if k["predicted"] is None else k["predicted"])
    facts = [kernel["kind"], f"{kernel['threads']} threads", kernel["bound"], kernel["unit"]]
    return f"{kernel['name'][:40]} ({', '.join(str(fact) for fact in facts if fact)})"


def _private(row: Json) -> int:
    """Bytes of stack and spills of a thread."""
    return sum(k["stack_bytes"] + k["spill_bytes"] for k in row.get("kernels", ()))


def line(row: Json) -> str:
    """What is said of a row as soon as it is there."""
    if "problem" in row:
        return f"{row['name']}: {row['problem'][:150]}"
    found = ratio(row)
    return f"{row['name']}: {'no prediction' if found is None else f'{found:.2f}'} of the floor"
