"""The results as JSON: what was measured, on what, with which versions.

The keys, in the order of the file. Times are in seconds, sizes in bytes, errors as
:func:`bench.errors.max_error` has them; what is unknown is null.

- ``schema``, ``date``, ``group`` (of cases, see :mod:`bench.groups`; null on a GPU), ``machine``,
  ``python``, ``rounds``
- ``busy``: processors that other processes kept busy in the silences, mean; see
  :mod:`bench.silence`
- ``reused``: the file that the peers' numbers were taken from; null if all were measured now
- ``ceilings``: see :func:`bench.ceilings.measure`
- ``peers``: by name, ``outputs`` (allocated or reused) and ``versions``, or a ``problem``
- ``cases``: ``case``, ``program``, ``floor_bytes``, ``flops``, ``operands``, ``bar``,
  ``bar_floor``, ``copy_share``, ``tolerance``, ``branches`` (of :class:`bench.table.Case`),
  ``peers`` (rows; ``ratio`` to ours and ``share`` of the copy are medians over the duels, see
  :mod:`bench.duels`, or null), ``verdict`` (:func:`bench.verdict.judge`)
- ``summary``: :func:`bench.verdict.summary`, and ``goals`` of the whole run: ``goal``, ``value``,
  ``least``, ``unit``
"""

from __future__ import annotations

import datetime
import importlib.util
import json
import math
import os
import platform
import re
import shutil
import statistics
import subprocess
from pathlib import Path
from typing import Any

from bench import groups, verdict
from bench.contest import Score
from bench.engines import OURS, VARIANTS
from bench.table import Case

Json = dict[str, Any]

#: Version of the JSON; raised when a field changes its meaning or goes away.
SCHEMA = 3


def header(rounds: int, threads: int, group: str | None = None) -> Json:
    """Date and machine: what makes two results comparable or not.

    Args:
        rounds: turns of each peer.
        threads: of each peer.
        group: one of :data:`bench.groups.GROUPS`; None for what is in none.
    """
    return {
        "schema": SCHEMA,
        "date": datetime.date.today().isoformat(),
        "group": group,
        "machine": {
            "cpu": cpu_name(),
            "arch": platform.machine(),
            "system": platform.system(),
            "processors": os.cpu_count(),
            "threads": threads,
            "c++": compiler_version(),
        },
        "python": platform.python_version(),
        "rounds": rounds,
        "busy": None,
        "reused": None,
        "ceilings": None,
        "peers": {},
        "cases": [],
        "summary": None,
    }


def add_case(results: Json, case: Case, rows: list[Json]) -> Json:
    """Add one case with its rows; returns it.

    Args:
        results: what there is so far.
        case: what was computed.
        rows: of all peers.
    """
    entry: Json = {
        "case": case.name,
        "program": case.program,
        "floor_bytes": case.floor_bytes,
        "flops": case.flops,
        "operands": case.operands,
        "bar": case.bar,
        "bar_floor": case.bar_floor,
        "copy_share": case.copy_share,
        "tolerance": case.tolerance,
        "branches": case.branches,
        "peers": rows,
    }
    entry["verdict"] = verdict.judge(entry, results["ceilings"])
    results["cases"].append(entry)
    return entry


def row(score: Score, tolerance: float) -> Json:
    """One peer on one case, in JSON values."""
    if score.problem or not score.samples:
        return {"peer": score.peer, "problem": score.problem or "it was not run"}
    return {
        "peer": score.peer,
        "first_call": score.first_call,
        "overhead": score.overhead,
        "minimum": min(score.samples),
        "median": statistics.median(score.samples),
        "calls": len(score.samples),
        "predicted": score.predicted,
        "ratio": statistics.median(score.ratios) if score.ratios else None,
        "share": statistics.median(score.shares) if score.shares else None,
        # JSON has no infinity: a result of the wrong shape, or with NaN, has no error.
        "max_error": score.error if math.isfinite(score.error) else None,
        "correct": score.error <= tolerance,
    }


def finish(results: Json, ceilings: Json | None, busy: float | None = None) -> None:
    """Judge again with the final ceilings, and sum up.

    Args:
        results: complete afterwards.
        ceilings: see :func:`bench.ceilings.measure`.
        busy: processors that other processes kept busy.
    """
    results["ceilings"] = ceilings
    results["busy"] = busy
    for case in results["cases"]:
        case["verdict"] = verdict.judge(case, ceilings)
    found = verdict.summary(results["cases"])
    goals = groups.GROUPS[results["group"]].goals if results["group"] else ()
    found["goals"] = [goal.judged(results["cases"], found) for goal in goals]
    results["summary"] = found


def failures(results: Json) -> list[str]:
    """Wrong results of anybody, and cases that we could not run, in one line each."""
    found = []
    for case in results["cases"]:
        for entry in case["peers"]:
            if entry.get("correct") is False:
                found.append(f"{case['case']}: {entry['peer']} is wrong by {entry['max_error']}")
            elif "problem" in entry and entry["peer"] == OURS:
                found.append(f"{case['case']}: {entry['problem']}")
    return found


def place(results: Json, folder: Path, chip: str = "") -> Path:
    """Where the results belong: ``folder/<date>-<chip>``, without an ending.

    Args:
        results: with their date and machine.
        folder: of all results.
        chip: that was measured; default: the processor.
    """
    chip = re.sub(r"[^a-z0-9]+", "-", (chip or results["machine"]["cpu"]).lower()).strip("-")
    return folder / f"{results['date']}-{chip}"


def write(results: Json, folder: Path) -> Path:
    """Write the JSON; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = place(results, folder)
    group = results["group"]
    ending = groups.GROUPS[group].ending if group else ""
    path = path.with_name(f"{path.name}{ending}.json")
    path.write_text(json.dumps(results, indent=2, allow_nan=False) + "\n")
    return path


def rows_of(path: Path) -> tuple[Json, dict[str, list[Json]]]:
    """Earlier results: their ``peers``, and by case the rows of all peers but ours and variants.

    Duels with what was then ours say nothing of what is ours now.

    Raises:
        ValueError: the file is of another schema.
    """
    stored = json.loads(path.read_text())
    if stored.get("schema") != SCHEMA:
        raise ValueError(f"{path} has schema {stored.get('schema')}; this program reads {SCHEMA}")
    own = (OURS, *VARIANTS)
    rows = {
        case["case"]: [
            entry | {"ratio": None} for entry in case["peers"] if entry["peer"] not in own
        ]
        for case in stored["cases"]
    }
    return {name: value for name, value in stored["peers"].items() if name not in own}, rows


def cpu_name() -> str:
    """The chip's name as the system tells it, and the generation that LLVM takes it for.

    In virtual machines the first is often no more than a brand. Where a GPU is measured, LLVM is
    not installed.
    """
    if importlib.util.find_spec("llvmlite") is None:
        return _brand()
    from llvmlite import binding

    return f"{_brand()} {binding.get_host_cpu_name()}"


def _brand() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or platform.machine()
    match = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return match[1].strip() if match else platform.machine()


def compiler_version() -> str:
    """The C++ compiler that Inductor uses."""
    path = shutil.which("g++")
    if path is None:
        return "none"
    done = subprocess.run([path, "-dumpfullversion"], capture_output=True, text=True)
    return f"g++ {done.stdout.strip()}"
