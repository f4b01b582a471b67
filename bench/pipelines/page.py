"""What a page says of pipelines: how far ours is from Halide's best schedule and the others."""

from __future__ import annotations

from typing import Any

from bench.cells import NONE, error, milliseconds, number, table
from bench.engines import HALIDE, OURS

Json = dict[str, Any]

_HEADS = [
    "case", "best / ours", "at least", "floor", "Halide / ours", "its schedule", "Inductor / ours",
    "met", "ms", "predicted ms", "error", "eager's error", "compile s",
]  # fmt: skip


def verdicts(results: Json) -> list[str]:
    """A table with a row for each case."""
    return table(_HEADS, [_row(case) for case in results["cases"]])


def halide(case: Json) -> Json | None:
    """The row of Halide's fastest schedule, if it ran."""
    rows = [row for row in case["peers"] if row["peer"] in HALIDE and "minimum" in row]
    return min(rows, key=lambda row: row["minimum"], default=None)


def _row(case: Json) -> list[str]:
    verdict = case["verdict"]
    by_name = {row["peer"]: row for row in case["peers"]}
    ours, eager, rival = by_name.get(OURS, {}), by_name.get("eager", {}), halide(case)
    ratio = None
    if rival and "minimum" in ours:
        ratio = rival["ratio"] or rival["minimum"] / ours["minimum"]
    return [
        case["case"],
        number(verdict["to_best"]),
        number(case["bar"]),
        number(case["bar_floor"]),
        number(ratio),
        rival["peer"].removeprefix("halide-").replace("-", " ") if rival else NONE,
        number(verdict["to_inductor"]),
        {"met": "yes", None: NONE}.get(verdict["standing"], verdict["standing"]),
        milliseconds(ours.get("minimum")),
        milliseconds(ours.get("predicted")),
        error(ours),
        error(eager),
        number(verdict["compile"]),
    ]


def remarks(results: Json) -> list[str]:
    """What one has to know of the peers."""
    return [
        "Halide is given each pipeline as an algorithm; the autoschedulers Mullapudi2016 and "
        "Adams2019 schedule all, and some are scheduled by hand. Where a comparison decides what "
        "becomes of a pixel, up to one in 10,000 may differ and is not in the errors.",
    ]
