"""``python -m bench.cliffs.worker FRAMEWORK THREADS``: one framework's operations in a process.

Orders are lines of JSON with ``name``, ``size``, ``peers`` and ``seconds`` (of calls of each peer;
0: one call). An answer has a row for each peer: ``first_call`` (seconds, with compiling and the
check), ``minimum`` (seconds of the fastest later call), ``faults`` (fresh pages per call, of the
turn with the fewest: results in memory that the C library has just got), ``error``, ``correct``;
ours has ``predicted`` (seconds) and ``kernels`` as well; or it has a ``problem``. ``bytes`` are
those of the operands and results.
"""

from __future__ import annotations

import gc
import importlib
import sys
import time
from collections.abc import Sequence
from resource import RUSAGE_SELF, getrusage
from typing import Any

import numpy as np

from bench import crew
from bench.calls import timed
from bench.cliffs.case import Array, Case
from bench.cliffs.table import FRAMEWORKS, OURS
from bench.orders import answers, in_one_line, serve

Json = dict[str, Any]

#: Errors of float32 below this part of the largest magnitude are those of another order of sums.
TOLERANCE = 2e-4
#: Turns of each peer.
TURNS = 3


def error_of(found: Sequence[Array], expected: Sequence[Array]) -> float:
    """Largest difference, relative to the largest magnitude of each result; equal NaN are equal."""
    if [x.shape for x in found] != [x.shape for x in expected]:
        return float("inf")
    return max((_error(f, e) for f, e in zip(found, expected, strict=True)), default=0.0)


def _error(found: Array, expected: Array) -> float:
    if not expected.size:
        return 0.0
    if expected.dtype.kind not in "fc":
        return 0.0 if np.array_equal(found, expected) else float("inf")
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    f, e = found.astype(wide), expected.astype(wide)
    finite = np.isfinite(e)
    same = np.array_equal(f[~finite], e[~finite], equal_nan=True)
    if not same or not np.isfinite(f[finite]).all():
        return float("inf")
    if not finite.any():
        return 0.0
    off, scale = np.abs(f[finite] - e[finite]).max(), np.abs(e[finite]).max()
    return float(off / scale) if scale else float(off)


def measure(framework: Any, case: Case, size: str, peers: Sequence[str], seconds: float) -> Json:
    """Compile, check, and take turns.

    Args:
        framework: a module of :data:`bench.cliffs.table.FRAMEWORKS`.
        case: of its table.
        size: of :data:`bench.cliffs.case.SIZES`.
        peers: of its peers; it is the first one whose results the others are compared with.
        seconds: of all turns of a peer.
    """
    arrays = case.draw(size)
    operands = framework.operands(arrays)
    running: list[tuple[Json, Any]] = []
    found: Json = {"peers": []}
    expected: list[Array] | None = None
    for peer in peers:
        row: Json = {"peer": peer}
        found["peers"].append(row)
        try:
            made = framework.PEERS[peer](case.function)
            call = framework.call(case, made, operands)
            begin = time.perf_counter()
            result = call()
            row["first_call"] = time.perf_counter() - begin
            got = framework.arrays(result)[: 1 if case.choosing else None]
            del result
            if expected is None:
                expected = got
                found["bytes"] = sum(a.nbytes for a in (*arrays, *got))
            error = error_of(got, expected)
            if error > TOLERANCE and (exact := framework.exact(case, operands)) is not None:
                exact = exact[: len(got)]
                # Both are off by rounding, or ours is wrong.
                theirs, error = error_of(expected, exact), error_of(got, exact)
                row["correct"] = error <= max(2 * theirs, TOLERANCE)
            else:
                row["correct"] = error <= TOLERANCE
            row["error"] = error if np.isfinite(error) else None
            if peer == OURS:
                row |= framework.report(made)
            running.append((row, call))
        except Exception as failure:  # a peer that cannot is a row that says why
            row["problem"] = in_one_line(failure)
    for turn in range(TURNS if seconds else 0):
        shift = turn % max(1, len(running))
        for row, call in running[shift:] + running[:shift]:
            if row.get("minimum", 0.0) < seconds:  # One call of others takes longer than all.
                before = getrusage(RUSAGE_SELF).ru_minflt
                times = timed(call, seconds / TURNS)
                faults = (getrusage(RUSAGE_SELF).ru_minflt - before) / len(times)
                row["minimum"] = min(row.get("minimum", np.inf), *times)
                row["faults"] = min(row.get("faults", np.inf), faults)
    return found


def main() -> None:
    """Serve until the standard input ends."""
    name, threads = sys.argv[1:]
    file = answers()
    crew.hold(int(threads))
    framework = importlib.import_module(FRAMEWORKS[name])
    framework.start(int(threads))
    cases = {case.name: case for case in framework.CASES}

    def answer(order: dict[str, Any]) -> dict[str, Any]:
        found = measure(
            framework, cases[order["name"]], order["size"], order["peers"], order["seconds"]
        )
        framework.forget()
        gc.collect()
        return found

    serve(file, answer)


if __name__ == "__main__":
    main()
