"""``python -m bench --group cliffs``: every operation, its ratios, and the results.

Two processes compile ours at the same time, into a cache. Programs that take longer than
:func:`bench.cliffs.table.compile_bar` so are compiled once more by one process alone, into an
empty cache, and the shorter of their two first calls counts: a user's program has the other cores
to itself, for its gradients. Then one process takes times alone. The framework's compiler takes
seconds for an operation: where it is asked for at all it compiles likewise, and only for rows that
move their bytes at less than :data:`NEAR` of the rate of a copy; for small operands only where it
came close with large ones.

The JSON has ``date``, ``machine``, ``python``, ``rounds``, ``busy`` (see :mod:`bench.silence`),
``copy`` (bytes read and written in a second), ``rows`` and ``summary`` (:func:`summary`). A row has
``framework``, ``case``, ``size``, ``bytes``, ``peers`` (by name, what :mod:`bench.cliffs.worker`
says; ``first_call`` of ours is that of an empty cache, and ``compile`` is what it takes beyond the
fastest later call), ``factorization``, ``best`` (the fastest other peer) and ``ratio`` (its time
over ours).
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench import __main__ as main
from bench import crew, report, suites, verdict
from bench.cliffs import page, picture
from bench.cliffs.case import SIZES, Case
from bench.cliffs.table import (
    BAR,
    COMPILER,
    FRAMEWORKS,
    ITSELF,
    OURS,
    SLOW_COMPILER,
    compile_bar,
)
from bench.silence import Silence
from bench.suites import Request

Json = dict[str, Any]

#: Seconds after which a case has failed.
PATIENCE_S = 90.0
#: Seconds of calls of each peer in a round.
TURN_S = 0.04
#: Part of the rate of a copy that nobody is expected to beat.
NEAR = 0.75
#: What the framework's compiler may take, in times of ours, and be asked for small operands, too.
CLOSE = 2.0
#: Processes that compile.
COMPILING = 2
#: The folder of the cache that they fill.
SHARED = "polyblocks"


def run(request: Request) -> int:
    """Measure, write and print; 1 if a result of ours is wrong.

    Raises:
        ValueError: a case that is not known, or earlier results.
    """
    if request.before:
        raise ValueError("--before is for the group calls only")
    tables = {name: importlib.import_module(module).CASES for name, module in FRAMEWORKS.items()}
    names = [f"{framework}: {case.name}" for framework, cases in tables.items() for case in cases]
    chosen = set(suites.chosen(request.only, names))
    head = report.header(request.rounds, request.threads)
    results: Json = {key: head[key] for key in ("date", "machine", "python", "rounds")}
    rates = main.ceilings(request.threads, "copy")
    results["copy"] = rates["copy"] if rates else None
    results["rows"], silence = [], Silence()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        for framework, cases in tables.items():
            some = [case for case in cases if f"{framework}: {case.name}" in chosen]
            session = Session(framework, request, Path(folder), silence, results["copy"])
            results["rows"] += session.rows(some) if some else []
    results["busy"] = silence.busy()
    results["summary"] = summary(results["rows"])
    complete = len(chosen) == len(names)
    folder_of_results = request.results if complete else request.others
    stem = suites.publish(results, page.markdown(results), folder_of_results, "-cliffs")
    try:
        picture.draw(results, Path(f"{stem}.png"))
    except ImportError:
        print("warning: no picture, matplotlib is not installed", file=sys.stderr)
    wrong = [row for row in results["rows"] if row["peers"][OURS].get("correct") is False]
    for row in wrong:
        print(f"error: {page.title(row)}: wrong", file=sys.stderr)
    return 1 if wrong else 0


class Session:
    """One framework's operations."""

    def __init__(
        self, framework: str, request: Request, folder: Path, silence: Silence, copy: float | None
    ) -> None:
        self._framework = framework
        self._threads = request.threads
        self._seconds = TURN_S * request.rounds
        self._folder = folder
        self._silence = silence
        self._copy = copy

    def rows(self, cases: Sequence[Case]) -> list[Json]:
        """The rows of the cases, the small operands first."""
        # The gradients' forward passes are timed with the large ones only.
        orders = [
            (case.name, size)
            for size in SIZES
            for case in cases
            if size == "large" or not case.gradient
        ]
        self._say("compiling ours")
        compiled = self._in_parallel(orders, [OURS])
        bars = {case.name: compile_bar(case.factorization) for case in cases}
        late = [o for o in orders if _first_call(compiled[o]) > bars[o[0]]]
        self._say(f"compiling {len(late)} of them alone")
        for order, answer in self._asked(late, [OURS], 0.0, "alone", cache="alone"):
            if 0 < _first_call(answer) < _first_call(compiled[order]):
                compiled[order] = answer
        self._say("taking times")
        itself, compiler = ITSELF[self._framework], COMPILER.get(self._framework)
        slow = compiler in SLOW_COMPILER
        peers = [itself, *([compiler] if compiler and not slow else []), OURS]
        found = self._alone(orders, peers)
        if compiler and slow:
            for size in reversed(SIZES):
                some = [o for o in orders if o[1] == size and self._may_gain(o, compiler, found)]
                self._say(f"{compiler}, {len(some)} operations with {size} operands")
                self._in_parallel(some, [compiler])
                for order, answer in self._alone(some, [OURS, compiler]).items():
                    found[order]["peers"] += [r for r in answer["peers"] if r["peer"] == compiler]
        longer = {case.name for case in cases if case.factorization}
        return [
            self._row(order, found[order], compiled[order]) | {"factorization": order[0] in longer}
            for order in orders
        ]

    def _row(self, order: tuple[str, str], answer: Json, compiled: Json) -> Json:
        peers = {row.pop("peer"): row for row in answer["peers"]}
        first = compiled["peers"][0] if compiled["peers"] else {}
        if "first_call" in peers[OURS] and "first_call" in first:
            peers[OURS]["first_call"] = first["first_call"]
            later = peers[OURS].get("minimum", 0.0)
            peers[OURS]["compile"] = max(0.0, first["first_call"] - later)
        times = {name: row["minimum"] for name, row in peers.items() if "minimum" in row}
        ours = times.pop(OURS, None)
        best = min(times, key=lambda name: times[name], default=None)
        return {
            "framework": self._framework,
            "case": order[0],
            "size": order[1],
            "bytes": answer.get("bytes"),
            "peers": peers,
            "best": best,
            "ratio": times[best] / ours if best and ours else None,
        }

    def _may_gain(
        self, order: tuple[str, str], compiler: str, found: dict[tuple[str, str], Json]
    ) -> bool:
        """Whether the framework's compiler may be faster than ours."""
        ours = _minimum(found[order], OURS)
        if ours is None:
            return False
        name, size = order
        if size == "large":
            moved = found[order].get("bytes")
            return not (self._copy and moved) or moved / ours < NEAR * self._copy
        large = found[name, "large"]
        theirs, ours = _minimum(large, compiler), _minimum(large, OURS)
        return bool(theirs and ours and theirs < CLOSE * ours)

    def _in_parallel(
        self, orders: Sequence[tuple[str, str]], peers: Sequence[str]
    ) -> dict[tuple[str, str], Json]:
        """Answers of processes that run at once, a thread each."""
        parts = [orders[start::COMPILING] for start in range(COMPILING)]
        with ThreadPoolExecutor(COMPILING) as pool:
            answers = [
                pool.submit(self._asked, part, peers, 0.0, f"compile{number}")
                for number, part in enumerate(parts)
            ]
            return {order: found for part in answers for order, found in part.result()}

    def _alone(
        self, orders: Sequence[tuple[str, str]], peers: Sequence[str]
    ) -> dict[tuple[str, str], Json]:
        return dict(self._asked(orders, peers, self._seconds, "times"))

    def _asked(
        self,
        orders: Sequence[tuple[str, str]],
        peers: Sequence[str],
        seconds: float,
        log: str,
        cache: str = SHARED,
    ) -> list[tuple[tuple[str, str], Json]]:
        """The answers of one process, which is replaced when it dies.

        It waits for silence where it takes times, or compiles into a ``cache`` of its own.
        """
        threads = self._threads
        command = [
            sys.executable, "-m", "bench.cliffs.worker", self._framework, str(threads),
        ]  # fmt: skip
        environment = {
            "POLYBLOCKS_CACHE_DIR": str(self._folder / cache),
            "TORCHINDUCTOR_CACHE_DIR": str(self._folder / "inductor"),
            # Others compile at the same time.
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
            "TF_CPP_MIN_LOG_LEVEL": "3",
        }
        member = crew.Member(
            f"{self._framework}-{log}", threads, environment, self._folder, command
        )
        found = []
        try:
            for number, (name, size) in enumerate(orders):
                if number % 20 == 0 and (seconds or cache != SHARED):
                    self._silence.keep(0.3)
                answer = member.ask(
                    "measure", PATIENCE_S, name=name, size=size, peers=peers, seconds=seconds
                )
                if "problem" in answer:
                    answer = {"peers": [{"peer": peer, **answer} for peer in peers]}
                found.append(((name, size), answer))
        finally:
            member.close()
        return found

    def _say(self, what: str) -> None:
        print(f"{self._framework}: {what}", flush=True)


def _first_call(answer: Json) -> float:
    """Seconds of the first call of ours, which was asked for alone; 0 if there was none."""
    return float(answer["peers"][0].get("first_call", 0.0)) if answer["peers"] else 0.0


def _minimum(answer: Json, peer: str) -> float | None:
    return next((row.get("minimum") for row in answer["peers"] if row["peer"] == peer), None)


def summary(rows: Sequence[Json]) -> list[Json]:
    """For each framework, and for all together (``framework`` null).

    ``rows``, ``geomean`` of the ratios, and how many are ``short`` (below
    :data:`bench.cliffs.table.BAR`), ``refused``, ``wrong`` and ``slow`` to compile.
    """
    return list(_summaries(rows))


def _summaries(rows: Sequence[Json]) -> Iterator[Json]:
    for framework in (*FRAMEWORKS, None):
        some = [row for row in rows if framework in (None, row["framework"])]
        ours = [row["peers"][OURS] for row in some]
        bars = [compile_bar(row["factorization"]) for row in some]
        yield {
            "framework": framework,
            "rows": len(some),
            "geomean": verdict.geometric_mean(row["ratio"] for row in some if row["ratio"]),
            "short": sum(row["ratio"] is not None and row["ratio"] < BAR for row in some),
            "refused": sum("problem" in row for row in ours),
            "wrong": sum(row.get("correct") is False for row in ours),
            "slow": sum(o.get("compile", 0.0) > bar for o, bar in zip(ours, bars, strict=True)),
        }
