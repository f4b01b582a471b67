"""``python -m bench --group keras``: a process for each network, the means, and the results.

The JSON has ``date``, ``machine``, ``python``, ``rounds``, ``busy`` (see :mod:`bench.silence`),
``rows`` (``model`` and the keys of :mod:`bench.keras_models.worker`) and ``summary``
(:func:`summary`).
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench import report, suites, verdict
from bench.keras_models import page
from bench.keras_models.table import MODELS, MODES, OURS, RIVALS
from bench.suites import Request

Json = dict[str, Any]

#: Seconds after which a process has failed.
PATIENCE_S = 1800.0


def run(request: Request) -> int:
    """Measure, write and print; 1 if a result of ours is wrong or a network does not compile.

    Raises:
        ValueError: a network that is not known, or earlier results.
    """
    if request.before:
        raise ValueError("--before is for the group calls only")
    chosen = suites.chosen(request.only, tuple(MODELS))
    head = report.header(request.rounds, request.threads)
    results: Json = {key: head[key] for key in ("date", "machine", "python", "rounds")}
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        results["rows"], results["busy"] = measured(chosen, request, Path(folder))
    results["summary"] = list(summary(results["rows"]))
    complete = chosen == tuple(MODELS)
    folder_of_results = request.results if complete else request.others
    suites.publish(results, page.markdown(results), folder_of_results, "-keras")
    bad = failures(results["rows"])
    for line in bad:
        print(f"error: {line}", file=sys.stderr)
    return 1 if bad else 0


def measured(
    chosen: tuple[str, ...], request: Request, folder: Path
) -> tuple[list[Json], float | None]:
    """The rows of the networks, and how many processors others kept busy."""
    rows: list[Json] = []
    busy: list[float] = []
    environment = {"TF_CPP_MIN_LOG_LEVEL": "3", "POLYBLOCKS_CACHE_DIR": str(folder / "cache")}
    for name in chosen:
        print(f"measuring {name}", flush=True)
        answer = folder / f"{name}.json"
        arguments = [name, str(request.rounds), str(request.threads), str(answer)]
        found, problem = suites.work(
            "bench.keras_models.worker", arguments, request.threads, environment, answer, PATIENCE_S
        )
        found = found or {"rows": [], "busy": None}
        rows += [{"model": name, **row} for row in found["rows"]]
        busy += [found["busy"]] if found["busy"] is not None else []
        if problem:
            # What the process did not come to is a failure of ours as well.
            done = {row["mode"] for row in found["rows"]}
            rows += [
                {"model": name, "mode": mode, "peer": OURS, "problem": problem}
                for mode in MODES
                if mode not in done
            ]
    return rows, statistics.fmean(busy) if busy else None


def summary(rows: list[Json]) -> Iterator[Json]:
    """For each mode and rival: ``geomean``, ``minimum``, and ``where`` that is.

    A ratio above 1 says that ours is faster.
    """
    for mode in MODES:
        for rival in RIVALS:
            ratios = {
                row["model"]: row["ratio"]
                for row in rows
                if row["mode"] == mode and row["peer"] == rival and "ratio" in row
            }
            least = min(ratios, key=lambda name: ratios[name], default=None)
            yield {
                "mode": mode,
                "rival": rival,
                "geomean": verdict.geometric_mean(ratios.values()),
                "minimum": ratios[least] if least else None,
                "where": least,
            }


def failures(rows: list[Json]) -> list[str]:
    """What of ours is wrong or did not run, in one line each."""
    found = []
    for row in rows:
        if row["peer"] == OURS and "problem" in row:
            found.append(f"{row['model']}, {row['mode']}: {row['problem']}")
        elif row["peer"] == OURS and not row["correct"]:
            found.append(f"{row['model']}, {row['mode']}: wrong by {row['error']}")
    return found
