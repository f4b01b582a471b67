"""``python -m bench --group calls``: runs the processes, judges the times, writes the results.

The JSON has ``date``, ``machine``, ``python``, ``rounds``, and ``rows``: ``framework``, ``case``,
``peer``, and ``us``, CPU microseconds of the calling thread per call, or a ``problem``.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench import crew, report, suites
from bench.host_calls import cases, page
from bench.host_calls.bars import CHIP, bars
from bench.suites import Request

Json = dict[str, Any]

#: A driver that only counts, in the place of a GPU's.
GPU = "GPU"

#: Framework of the tables -> its processes: a module ``in_…`` and the interpreter.
PROCESSES = {
    "PyTorch": (("torch", sys.executable), ("onnx_runtime", str(crew.PEERS_PYTHON))),
    "JAX": (("jax", sys.executable),),
    "TensorFlow": (("tensorflow", sys.executable),),
    "NumPy": (("numpy", sys.executable),),
    "C": (("c", sys.executable),),
    GPU: (("gpu", sys.executable),),
}

#: Those that need files of :mod:`bench.host_calls.in_files`.
FROM_FILES = ("PyTorch", "NumPy", "C")

#: Seconds after which a process has failed.
PATIENCE_S = 600.0

_MODULE = "bench.host_calls.worker"
_QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3"}


def names() -> list[str]:
    """Of all rows: ``PyTorch: 8 arrays`` and so on."""
    return [
        f"{framework}: {case.name}"
        for framework in PROCESSES
        for case in cases.CASES
        if case.only_in == framework or (not case.only_in and framework != GPU)
    ]


def run(request: Request) -> int:
    """Measure, write and print; 1 if ours fails somewhere or misses a bar that holds here.

    Raises:
        ValueError: a case that is not known, or earlier results that cannot be read.
    """
    every = names()
    chosen = suites.chosen(request.only, every)
    before: list[Json] = []
    if request.before:
        before = json.loads(request.before.read_text()).get("rows", [])
    head = report.header(request.rounds, request.threads)
    results: Json = {key: head[key] for key in ("date", "machine", "python", "rounds")}
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        results["rows"] = measured(chosen, request, Path(folder))
    text = page.markdown(results, before)
    folder_of_results = request.results if chosen == tuple(every) else request.others
    suites.publish(results, text, folder_of_results, "-calls")
    bad = failures(results, before)
    for line in bad:
        print(f"error: {line}", file=sys.stderr)
    return 1 if bad else 0


def measured(chosen: tuple[str, ...], request: Request, folder: Path) -> list[Json]:
    """The rows of the chosen cases, by framework."""
    by_framework: dict[str, list[str]] = {}
    for name in chosen:
        framework, _, case = name.partition(": ")
        by_framework.setdefault(framework, []).append(case)
    environment = _QUIET | {
        "POLYBLOCKS_CACHE_DIR": str(folder / "cache"),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
    }

    def process(where: str, python: str, names: list[str]) -> tuple[list[Json], str]:
        print(f"measuring {where.replace('_', ' ')}", flush=True)
        answer = folder / f"{where}.json"
        arguments = [where, str(folder), str(request.rounds), str(answer), *names]
        found, problem = suites.work(
            _MODULE, arguments, request.threads, environment, answer, PATIENCE_S, python=python
        )
        return found or [], problem

    rows: list[Json] = []
    wanted = {case for name in FROM_FILES for case in by_framework.get(name, ())}
    if wanted:
        # A file that cannot be made is a problem of those that load it.
        process("files", sys.executable, sorted(wanted))
    for framework, cases_of_it in by_framework.items():
        for where, python in PROCESSES[framework]:
            peer = "ONNX Runtime" if where == "onnx_runtime" else where
            if not Path(python).exists():
                problem = "it is not installed; `make bench` does it"
                rows.append({"framework": framework, "case": "", "peer": peer, "problem": problem})
                continue
            found, problem = process(where, python, cases_of_it)
            rows += [{"framework": framework, **row} for row in found]
            if problem:
                rows.append({"framework": framework, "case": "", "peer": peer, "problem": problem})
    return rows


def failures(results: Json, before: list[Json]) -> list[str]:
    """What of ours did not run, and the bars that are missed; in microseconds on one chip only."""
    found = [
        f"{row['framework']}, {row['case'] or 'all'}: {row['peer']}: {row['problem']}"
        for row in results["rows"]
        if "problem" in row and row["peer"] not in page.RIVALS
    ]
    here = results["machine"]["cpu"].endswith(CHIP)
    for bar in bars(results["rows"], before):
        if bar.verdict == "missed" and (here or not bar.absolute):
            found.append(
                f"{bar.framework}, {bar.case}: {bar.peer} took {bar.us:.2f} µs, at most "
                f"{bar.floor:.2f} are asked"
            )
    return found
