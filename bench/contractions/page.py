"""What a page says of contractions: how near they are to the machine's multiply-adds."""

from __future__ import annotations

from typing import Any

from bench.cells import NONE, error, milliseconds, number, percent, table
from bench.engines import FROZEN, OURS

Json = dict[str, Any]

_HEADS = [
    "case", "GFLOP/s", "% of peak", "best / ours", "at least", "floor", "Inductor / ours", "met",
    "ms", "frozen ms", "predicted ms", "error", "eager's error", "compile s",
]  # fmt: skip


def verdicts(results: Json) -> list[str]:
    """A table with a row for each case."""
    return table(_HEADS, [_row(case) for case in results["cases"]])


def _row(case: Json) -> list[str]:
    verdict = case["verdict"]
    by_name = {row["peer"]: row for row in case["peers"]}
    ours, eager = by_name.get(verdict["way"] or OURS, {}), by_name.get("eager", {})
    rate, standing = verdict["rate"], verdict["standing"]
    return [
        case["case"],
        f"{rate / 1e9:.0f}" if rate else NONE,
        percent(verdict["peak_share"]),
        number(verdict["to_best"]),
        number(case["bar"]),
        number(case["bar_floor"]),
        number(verdict["to_inductor"]),
        {"met": "yes", None: NONE}.get(standing, standing),
        milliseconds(by_name.get(OURS, {}).get("minimum")),
        milliseconds(by_name.get(FROZEN, {}).get("minimum")),
        milliseconds(ours.get("predicted")),
        error(ours),
        error(eager),
        number(verdict["compile"]),
    ]


def remarks(results: Json) -> list[str]:
    """What one has to know of the peers."""
    return [
        "OpenVINO has the weights of convolutions as constants, which it packs once, and so have "
        "OpenVINO and ONNX Runtime those of models; all others get them at each call. So does "
        "ours, and of models also with frozen weights, which it packs once and checks at each "
        "call: the faster one counts.",
    ]
