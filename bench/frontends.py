"""``python -m bench.frontends``: the algorithms in JAX and TensorFlow, against their own compilers.

Each algorithm of :mod:`bench.algorithms` runs under this compiler and under ``jax.jit``, and under
this compiler and ``tf.function(jit_compile=True)``; under this compiler behind PyTorch as well, so
that the three frontends can be compared with each other. Turns and duels as in
:mod:`bench.contest`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markdown import Markdown

from bench import contest, crew, page, report, verdict
from bench.__main__ import OTHERS
from bench.algorithms.table import ALGORITHMS, Algorithm
from bench.cells import NONE, table
from bench.engines import OURS
from bench.silence import Silence
from bench.table import Case

#: This compiler behind a framework -> what it is compared with.
PAIRS = {"polyblocks-jax": "jax", "polyblocks-tf": "tf-xla"}

Json = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; the exit status is 1 if a result of ours is wrong or an algorithm does not compile."""
    parser = argparse.ArgumentParser(prog="python -m bench.frontends", description=__doc__)
    parser.add_argument("--only", default="", help="algorithms of these names, comma-separated")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each peer, and duels")
    parser.add_argument("--threads", type=int, default=2, help="of each peer (default: 2)")
    parser.add_argument("--results", type=Path, default=OTHERS, help=f"default: {OTHERS}")
    args = parser.parse_args(arguments)
    try:
        chosen = named(args.only)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    results = report.header(args.rounds, args.threads)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        results["algorithms"] = run(results, chosen, Path(folder))
    results["summary"] = {ours: summary(results["algorithms"], ours) for ours in PAIRS}
    path = report.place(results, args.results)
    path = path.with_name(path.name + "-frontends.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=2, allow_nan=False) + "\n")
    text = markdown(results)
    path.with_suffix(".md").write_text(text)
    Console(width=160).print(Markdown(text))
    bad = failures(results["algorithms"])
    for line in bad:
        print(f"error: {line}", file=sys.stderr)
    return 1 if bad else 0


def named(text: str) -> tuple[Algorithm, ...]:
    """The algorithms of a comma-separated list of names; all for an empty one.

    Raises:
        ValueError: one is not known.
    """
    wanted = [name.strip() for name in text.split(",") if name.strip()]
    known = {algorithm.name: algorithm for algorithm in ALGORITHMS}
    for name in wanted:
        if name not in known:
            raise ValueError(f"no algorithm is called '{name}'; they are {', '.join(known)}")
    return tuple(known[name] for name in wanted) or ALGORITHMS


def run(results: Json, chosen: Sequence[Algorithm], folder: Path) -> list[Json]:
    """Measure; one entry per algorithm, with a row for each peer."""
    rounds, threads = results["rounds"], results["machine"]["threads"]
    pace, silence = contest.Pace(rounds, duels=rounds), Silence()
    names = (OURS, *(name for pair in PAIRS.items() for name in pair))
    caches = {"POLYBLOCKS_CACHE_DIR": str(folder / "cache")}
    found = []
    with crew.crew(names, threads, caches, folder) as members:
        by_name = {member.name: member for member in members}
        results["peers"] = {name: member.ask("describe") for name, member in by_name.items()}
        for number, algorithm in enumerate(chosen):
            print(f"measuring {algorithm.name}", flush=True)
            case = Case(algorithm.name, f"algorithms.{algorithm.name}", algorithm.inputs, 0)
            rows = []
            for index, group in enumerate([(OURS,), *PAIRS.items()]):
                able = [by_name[n] for n in group if "problem" not in results["peers"][n]]
                where = folder / f"{number}-{index}"
                scores = contest.compare(case, able, where, pace, silence, ours=group[0])
                rows += [report.row(score, algorithm.tolerance) for score in scores]
            found.append(
                {"name": algorithm.name, "contraction": algorithm.contraction, "peers": rows}
            )
    results["busy"] = silence.busy()
    return found


def ratio(entry: Json, ours: str) -> float | None:
    """Time of the framework's compiler over ours: in duels, else of the fastest calls."""
    rows = {row["peer"]: row for row in entry["peers"] if "minimum" in row}
    mine, theirs = rows.get(ours), rows.get(PAIRS[ours])
    if mine is None or theirs is None:
        return None
    fought: float | None = theirs["ratio"]
    return fought or theirs["minimum"] / mine["minimum"]


def summary(entries: Sequence[Json], ours: str) -> Json:
    """Over what is not dominated by contractions: the geometric mean, and who is slower."""
    ratios = {e["name"]: ratio(e, ours) for e in entries if not e["contraction"]}
    return {
        "geomean": verdict.geometric_mean(ratios.values()),
        "slower": [name for name, value in ratios.items() if value is None or value < 0.95],
    }


def failures(entries: Sequence[Json]) -> list[str]:
    """What of ours is wrong or did not run, in one line each."""
    found = []
    for entry in entries:
        for row in entry["peers"]:
            if not row["peer"].startswith(OURS):
                continue
            if "problem" in row:
                found.append(f"{entry['name']}: {row['peer']}: {row['problem']}")
            elif not row["correct"]:
                found.append(f"{entry['name']}: {row['peer']} is wrong by {row['max_error']}")
    return found


def markdown(results: Json) -> str:
    """The page: one table of times and ratios, and the means."""
    machine = results["machine"]
    lines = [f"# Three frontends, {results['date']}, {machine['cpu']}", ""]
    if (results["busy"] or 0) > page.BUSY:
        lines += ["**The machine was busy with other work: do not trust these numbers.**", ""]
    lines += [
        f"{machine['threads']} threads, float32, {results['rounds']} rounds and duels; "
        "milliseconds of the fastest call, ratios of duels. Algorithms with a star are dominated "
        "by a contraction and are not in the means.",
        "",
    ]
    for ours, rival in PAIRS.items():
        found = results["summary"][ours]
        mean = f"{found['geomean']:.2f}×" if found["geomean"] else NONE
        slower = ", ".join(found["slower"]) or "none"
        lines += [f"- {ours} against {rival}: geometric mean {mean}; below 0.95×: {slower}"]
    rows = []
    for entry in results["algorithms"]:
        times = {row["peer"]: row.get("minimum") for row in entry["peers"]}
        cells = [entry["name"] + (" *" if entry["contraction"] else ""), _ms(times.get(OURS))]
        for ours, rival in PAIRS.items():
            value = ratio(entry, ours)
            cells += [_ms(times.get(ours)), _ms(times.get(rival)), f"{value:.2f}" if value else "–"]
        rows.append(cells)
    heads = ["algorithm", OURS]
    for ours, rival in PAIRS.items():
        heads += [ours, rival, "ratio"]
    problems = [
        f"- {e['name']}: {row['peer']}: {row['problem']}"
        for e in results["algorithms"]
        for row in e["peers"]
        if "problem" in row
    ]
    lines += ["", *table(heads, rows)]
    if problems:
        lines += ["", "## Not run", "", *problems]
    return "\n".join(lines) + "\n"


def _ms(seconds: float | None) -> str:
    return NONE if seconds is None else f"{seconds * 1e3:.3g}"


if __name__ == "__main__":
    sys.exit(main())
