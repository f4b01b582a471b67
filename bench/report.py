"""Reporting: results as JSON for machines and as a Markdown table for people."""

from __future__ import annotations

import datetime
import json
import math
import platform
import re
from pathlib import Path
from typing import Any

import torch

from bench import peers
from bench.cases import Case
from bench.measure import Timing

#: Version of the JSON; raised when a field changes its meaning or goes away.
SCHEMA = 1

#: What the others are compared with.
OURS = "polyblocks"


def header(rounds: int) -> dict[str, Any]:
    """Date, machine, versions: what makes two results comparable or not."""
    return {
        "schema": SCHEMA,
        "date": datetime.date.today().isoformat(),
        "machine": {
            "cpu": cpu_name(),
            "arch": platform.machine(),
            "system": platform.system(),
            "threads": torch.get_num_threads(),
        },
        "python": platform.python_version(),
        "versions": peers.versions(),
        "rounds": rounds,
        "cases": [],
    }


def add_case(results: dict[str, Any], case: Case, nbytes: int, timings: list[Timing]) -> None:
    """Add one case; times are in seconds, errors as :func:`bench.measure.max_error` has them."""
    results["cases"].append(
        {
            "case": case.name,
            "floor_bytes": nbytes,
            "tolerance": case.tolerance,
            "peers": [peer_row(case, timing) for timing in timings],
        }
    )


def peer_row(case: Case, timing: Timing) -> dict[str, Any]:
    """One peer on one case, in JSON values: what is unknown is null."""
    if timing.problem:
        return {"peer": timing.peer, "problem": timing.problem}
    checked = not math.isnan(timing.max_error)
    return {
        "peer": timing.peer,
        "first_call": timing.first_call,
        "minimum": timing.minimum,
        "median": timing.median,
        "calls": len(timing.samples),
        # JSON has no infinity: a result of the wrong shape, or with NaN, has no error.
        "max_error": timing.max_error if math.isfinite(timing.max_error) else None,
        "correct": timing.max_error <= case.tolerance if checked else None,
    }


def failures(results: dict[str, Any]) -> list[str]:
    """Wrong results of anybody, and cases that we could not run, in one line each."""
    found = []
    for case in results["cases"]:
        for row in case["peers"]:
            if row.get("correct") is False:
                found.append(f"{case['case']}: {row['peer']} is wrong by {row['max_error']}")
            elif "problem" in row and row["peer"] == OURS:
                found.append(f"{case['case']}: {row['problem']}")
    return found


def markdown(results: dict[str, Any]) -> str:
    """A page with one table: minimum ms of each peer, ratios to ours, errors of ours."""
    machine = results["machine"]
    versions = ", ".join(f"{name} {v}" for name, v in results["versions"].items())
    names = list(dict.fromkeys(r["peer"] for c in results["cases"] for r in c["peers"]))
    others = [name for name in names if name not in (OURS, "copy")]
    heads = [
        "case",
        *(f"{name} ms" for name in names),
        *(f"{name} / ours" for name in others),
        "first call s",
        "max error",
    ]
    lines = [
        f"# {results['date']}, {machine['cpu']}",
        "",
        f"{machine['threads']} threads, Python {results['python']}, {versions}. "
        "Minimum of all calls after the first; peers take turns, with idle time between. "
        "`copy` moves the case's inputs and outputs once, between warm buffers. "
        "First call and error are ours; errors are against float64.",
        "",
        f"| {' | '.join(heads)} |",
        f"|{'---|' * len(heads)}",
    ]
    for case in results["cases"]:
        rows = {row["peer"]: row for row in case["peers"]}
        ours = rows[OURS]
        cells = [case["case"], *(_milliseconds(rows.get(name)) for name in names)]
        cells += [_ratio(rows.get(name), ours) for name in others]
        error = ours.get("max_error")
        cells += [
            f"{ours['first_call']:.2f}" if "first_call" in ours else "–",
            f"{error:.1e}" if error is not None else "–",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    problems = [
        f"- {case['case']}: {row['peer']} did not run: {row['problem']}"
        for case in results["cases"]
        for row in case["peers"]
        if "problem" in row
    ]
    return "\n".join([*lines, *([""] if problems else []), *problems]) + "\n"


def write(results: dict[str, Any], folder: Path) -> tuple[Path, Path]:
    """Write ``<date>-<cpu>.json`` and ``.md``; returns both paths."""
    folder.mkdir(parents=True, exist_ok=True)
    chip = re.sub(r"[^a-z0-9]+", "-", results["machine"]["cpu"].lower()).strip("-")
    base = folder / f"{results['date']}-{chip}"
    places = base.with_name(base.name + ".json"), base.with_name(base.name + ".md")
    places[0].write_text(json.dumps(results, indent=2, allow_nan=False) + "\n")
    places[1].write_text(markdown(results))
    return places


def cpu_name() -> str:
    """The chip's name as the system tells it."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or platform.machine()
    match = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return match[1].strip() if match else platform.machine()


def _milliseconds(row: dict[str, Any] | None) -> str:
    return f"{row['minimum'] * 1e3:.3g}" if row and "minimum" in row else "–"


def _ratio(row: dict[str, Any] | None, ours: dict[str, Any]) -> str:
    if not row or "minimum" not in row or "minimum" not in ours:
        return "–"
    return f"{row['minimum'] / ours['minimum']:.2f}"
