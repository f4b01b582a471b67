"""The data behind ``polyblocks explain``: JSON values, described by ``schema.json``."""

from __future__ import annotations

import linecache
import math
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import polyblocks
from polyblocks.explanation.decisions import (
    INTERNAL,
    NAMES,
    VERDICT_WORDS,
    VERDICTS,
    follow,
    sentence,
)
from polyblocks.explanation.timeline import timeline
from polyblocks.program import DTYPES

if TYPE_CHECKING:
    from polyblocks.reports.report import CallTime, Part, Report

#: Version of the document; raised when a reader of an older one would misunderstand it.
SCHEMA = 1


def document(report: Report, title: str = "") -> dict[str, Any]:
    """Everything that is known, for the terminal, the page and other programs.

    Args:
        report: what was watched; with times where :meth:`Report.measure` took some.
        title: of the page; default: the names of the programs.
    """
    parts = [_part(part) for part in report.parts]
    names = ", ".join(dict.fromkeys(part["name"] for part in parts))
    return {
        "schema": SCHEMA,
        "polyblocks": polyblocks.__version__,
        "title": title or names or "nothing was compiled",
        "parts": parts,
        "fallbacks": [vars(f) | {"count": n} for f, n in report.fallbacks.items()],
        "failures": list(report.failures),
        "call": _call(report.call),
    }


def _call(call: CallTime | None) -> dict[str, Any] | None:
    if call is None:
        return None
    return asdict(call) | {"host_is_larger": call.host_is_larger, "text": str(call)}


def _part(part: Part) -> dict[str, Any]:
    report = part.report
    chip = report.get("chip")
    whole = part.profile[0] if part.profile else None
    kernels = [_kernel(row, part.profile, chip) for row in part.kernels]
    total = sum(k["seconds"] or 0.0 for k in kernels)
    for kernel in kernels:
        kernel["share"] = (kernel["seconds"] or 0.0) / total if total else 0.0
    kernels.sort(key=lambda k: -k["share"])
    estimates = [k["estimate"] for k in kernels if k["estimate"] is not None]
    times = [e.get("predicted_seconds") for e in estimates]
    levels = [level["name"] for level in (chip or {}).get("memory", ())]
    totals = {
        "calls": sum(k["calls"] for k in kernels),
        # Unknown if one of them is.
        "predicted_seconds": sum(times) if times and None not in times else None,
        "measured_seconds": whole["minimum"] if whole else None,
        "runs": whole["calls"] if whole else 0,
        "flops": sum(e["flops"] for e in estimates),
        "bytes": {n: sum(e["bytes"].get(n, 0) for e in estimates) for n in levels},
        "moved_bytes": sum(e["moved_bytes"] for e in estimates),
        "floor_bytes": sum(e["floor_bytes"] for e in estimates),
        "argument_bytes": sum(map(_nbytes, part.arguments)),
        "workspace_bytes": part.workspace_bytes,
        "code_bytes": sum(k["code_bytes"] or 0 for k in kernels),
    }
    return {
        "name": part.name,
        "target": part.target,
        "arch": part.arch,
        "cached": part.cached,
        "key": part.key,
        "compile_seconds": part.seconds,
        "profiled": part.profiled,
        "measured": whole is not None,
        "chip": chip,
        "arguments": [
            {name: row[name] for name in ("role", "name", "dtype", "shape")}
            for row in part.arguments
            if row["role"] in ("input", "output")
        ],
        "totals": totals,
        "kernels": kernels,
        "timeline": timeline(part.launches, kernels),
        "decisions": _decisions(report.get("decisions", ()), part.kernels),
        "passes": list(report.get("passes", ())),
    }


def _kernel(
    row: dict[str, Any], profile: tuple[dict[str, Any], ...], chip: dict[str, Any] | None
) -> dict[str, Any]:
    calls = [p for p in profile[1:] if p["kernel"] == row["name"] and p["calls"]]
    # A call that a check skipped in every run has no time.
    measured = sum(p["minimum"] for p in calls) if calls else None
    estimate = row.get("estimate")
    if estimate is not None:
        # JSON objects come back sorted by name; order levels by speed.
        levels = [level["name"] for level in (chip or {}).get("memory", ())]
        moved = sorted(estimate["bytes"].items(), key=lambda e: _place(levels, e[0]))
        estimate = estimate | {"bytes": dict(moved)}
    predicted = estimate.get("predicted_seconds") if estimate is not None else None
    seconds = measured if measured is not None else predicted
    peak = peak_of(row.get("unit", ""), chip)
    rate = estimate["flops"] / seconds if estimate is not None and seconds else None
    return {
        "name": row["name"],
        "kind": row.get("kind", ""),
        "unit": row.get("unit", ""),
        "parallel": row.get("parallel"),
        "calls": row.get("calls", 1),
        "code_bytes": row.get("code_bytes"),
        "nests": row.get("nests", []),
        "sources": [_source(text) for text in row.get("sources") or ()],
        "estimate": estimate,
        "predicted_seconds": predicted,
        "measured_seconds": measured,
        "seconds": seconds,
        "flops_per_second": rate,
        "peak_share": rate / peak if rate is not None and peak else None,
    }


def peak_of(unit: str, chip: dict[str, Any] | None) -> float:
    """Operations per second of a chip's matrix unit, or its most without one; 0: unknown."""
    chip = chip or {}
    if unit:
        return float(chip.get("matrix_flops", {}).get(unit, 0.0))
    return float(max(chip.get("flops", {}).values(), default=0.0))


def _place(levels: list[str], name: str) -> int:
    return levels.index(name) if name in levels else len(levels)


def _source(text: str) -> dict[str, Any]:
    """``op file:line`` -> the parts, and the user's line where the file can be read."""
    op, _, location = text.partition(" ")
    file, _, number = location.rpartition(":")
    line = linecache.getline(file, int(number)).strip() if number.isdigit() else ""
    return {"op": op, "location": location, "line": line}


def _decisions(decisions: Any, kernels: tuple[dict[str, Any], ...]) -> list[dict[str, Any]]:
    homes = {nest: k["name"] for k in kernels for nest in k.get("nests", ())}
    rows = []
    for decision, found in zip(decisions, follow(decisions, homes), strict=True):
        if decision.get("what") in INTERNAL:
            continue
        rows.append(
            {
                "pass": decision.get("pass", ""),
                "nest": decision.get("nest", ""),
                "what": decision.get("what", ""),
                "accepted": VERDICTS.get(decision.get("what", "")),
                "text": sentence(decision),
                "kernels": found,
                "numbers": {k: v for k, v in decision.items() if k not in NAMES},
            }
        )
    return rows


def verdicts(part: dict[str, Any], most: int = 6) -> list[tuple[str, int]]:
    """How many decisions of each kind there were, in words; together they are all.

    Args:
        part: of the document.
        most: kinds that are named, the most frequent ones; the rest is ``others``.

    Returns:
        ``fused``, ``kept apart``, … with their numbers.
    """
    counts = Counter(
        VERDICT_WORDS.get(d["what"], d["what"])
        for d in part["decisions"]
        if d["accepted"] is not None
    )
    named = counts.most_common(most)
    rest = len(part["decisions"]) - sum(n for _, n in named)
    return [*named, ("others", rest)] if rest else named


def _nbytes(row: dict[str, Any]) -> int:
    """Bytes of an argument that the caller passes, or gets."""
    if row["role"] not in ("input", "output") or row.get("updates") is not None:
        return 0
    return math.prod(row["shape"]) * DTYPES[row["dtype"]][1]
