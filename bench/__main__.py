"""``python -m bench``: time every case in every peer, judge, write JSON, a page and a plot."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markdown import Markdown

from bench import contest, crew, groups, page, plot, report, suites, table
from bench.engines import ENGINES, OURS, QUICK, VARIANTS, takes_part
from bench.silence import Silence

#: Where complete results go, and where all others.
RESULTS = Path(__file__).parent / "results"
OTHERS = Path("out") / "bench"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; the exit status is 1 if a result is wrong or a case does not compile here."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--group",
        choices=[*groups.GROUPS, *groups.SUITES],
        default=next(iter(groups.GROUPS)),
        help="of cases (default: %(default)s)",
    )
    parser.add_argument(
        "--only", default="", help="cases whose names contain one of these, comma-separated"
    )
    parser.add_argument("--peers", help=f"default: all, {','.join(ENGINES)}")
    parser.add_argument("--quick", action="store_true", help=f"peers: {', '.join(QUICK)}")
    parser.add_argument(
        "--rounds", type=int, default=5, help="turns of each peer, and duels (default: 5)"
    )
    parser.add_argument("--threads", type=int, default=2, help="of each peer (default: 2)")
    parser.add_argument(
        "--results",
        type=Path,
        help=f"folder for the results; default: bench/results, or {OTHERS} if incomplete",
    )
    parser.add_argument(
        "--reuse",
        type=Path,
        metavar="JSON",
        help="measure only ours and take the peers from these earlier results; not for publishing",
    )
    parser.add_argument(
        "--before",
        type=Path,
        metavar="JSON",
        help="earlier results of the group calls, of which decorated calls may be no slower",
    )
    args = parser.parse_args(arguments)
    if args.group in groups.SUITES:
        return suite(args)
    try:
        if args.before:
            raise ValueError("--before is for the group calls only")
        group = groups.GROUPS[args.group]
        cases = table.named(args.only, group.cases)
        if args.reuse and args.results and args.results.resolve() == RESULTS.resolve():
            raise ValueError(
                "results with reused peers are not for publishing; name another folder"
            )
        earlier = report.rows_of(args.reuse) if args.reuse else None
        # Reused peers do not run, and need not be installed.
        wanted = ",".join(QUICK) if args.quick else args.peers or ",".join(ENGINES)
        peers = chosen_peers(",".join((OURS, *VARIANTS)) if earlier else wanted)
        everybody = who_take_part(ENGINES, group.cases)
        peers = who_take_part(peers, cases)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    results = report.header(args.rounds, args.threads, args.group)
    if earlier:
        results["reused"] = args.reuse.name
        results["peers"] = dict(earlier[0])
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        complete = run(results, cases, peers, earlier[1] if earlier else {}, Path(folder))
    complete = complete and cases == group.cases and peers == everybody
    return publish(results, args.results or (RESULTS if complete else OTHERS))


def suite(args: argparse.Namespace) -> int:
    """Run a group whose peers share a process; the exit status."""
    try:
        given = {"--peers": args.peers, "--quick": args.quick, "--reuse": args.reuse}
        for option, value in given.items():
            if value:
                raise ValueError(f"{option} is not for the group {args.group}; leave it out")
        run = importlib.import_module(groups.SUITES[args.group]).run
        request = suites.Request(
            args.only, args.rounds, args.threads, args.results or RESULTS,
            args.results or OTHERS, args.before,
        )  # fmt: skip
        return int(run(request))
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def chosen_peers(names: str) -> tuple[str, ...]:
    """The peers of a comma-separated list, ours always first.

    Raises:
        ValueError: one is not known, or its environment is not there.
    """
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    for name in wanted:
        if name not in ENGINES:
            raise ValueError(f"no peer is called '{name}'; the peers are {', '.join(ENGINES)}")
        if not crew.python_for(name).exists():
            raise ValueError(
                f"peer '{name}' is not installed; `make bench` does it, or use --quick"
            )
    return (OURS, *(name for name in ENGINES if name in wanted and name != OURS))


def who_take_part(peers: Iterable[str], cases: Sequence[table.Case]) -> tuple[str, ...]:
    """The peers that have at least one of the cases to run."""
    return tuple(name for name in peers if any(takes_part(name, c.program) for c in cases))


def run(
    results: dict[str, Any],
    cases: Sequence[table.Case],
    peers: Sequence[str],
    earlier: dict[str, list[dict[str, Any]]],
    folder: Path,
) -> bool:
    """Measure ceilings and cases.

    Returns:
        Whether all were measured; otherwise somebody interrupted it, or asked it to end.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    console = _console()
    threads = results["machine"]["threads"]
    console.print("measuring the machine's ceilings", highlight=False)
    before = ceilings(threads)
    pace, silence = groups.GROUPS[results["group"]].pace(results["rounds"]), Silence()

    def copy() -> float | None:
        rates = ceilings(threads, "copy")
        return rates["copy"] if rates else None

    # First calls compile: nobody is to find the work of an earlier run in a cache.
    caches = {
        "POLYBLOCKS_CACHE_DIR": str(folder / "polyblocks"),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
    }
    with crew.crew(peers, threads, caches, folder) as members:
        for member in members:
            results["peers"][member.name] = member.ask("describe")
        able = [m for m in members if "problem" not in results["peers"][m.name]]
        absent = [
            {"peer": m.name, "problem": results["peers"][m.name]["problem"]}
            for m in members
            if m not in able
        ]
        try:
            for number, case in enumerate(cases):
                console.print(f"measuring {case.name}", highlight=False)
                where = folder / f"case{number}"
                scores = contest.compare(case, able, where, pace, silence, copy)
                rows = [report.row(score, case.tolerance) for score in scores]
                report.add_case(results, case, rows + absent + earlier.get(case.name, []))
        except KeyboardInterrupt:
            done = len(results["cases"])
            print(f"warning: interrupted after {done} of {len(cases)} cases", file=sys.stderr)
    after = ceilings(threads)
    rates = better(before, after) if before and after else before or after
    report.finish(results, rates, silence.busy())
    return len(results["cases"]) == len(cases)


def ceilings(threads: int, *what: str) -> dict[str, Any] | None:
    """:func:`bench.ceilings.measure` in a process of its own; None, and why, if it fails.

    With ``copy`` it is :func:`bench.ceilings.copy_rate`.
    """
    command = [sys.executable, "-m", "bench.ceilings", str(threads), *what]
    environment = os.environ | crew.thread_variables(threads)
    done = subprocess.run(
        command, cwd=crew.ROOT, env=environment, capture_output=True, text=True, timeout=300
    )
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [f"status {done.returncode}"]
        print(f"warning: the ceilings were not measured: {last[0]}", file=sys.stderr)
        return None
    return dict(json.loads(done.stdout))


def better(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """The higher of each rate of two measurements of the same machine."""
    result = dict(one)
    result["peaks"] = {k: max((v, other["peaks"][k]), key=_known) for k, v in one["peaks"].items()}
    result["memory"] = {
        level: {kind: max(rate, other["memory"][level][kind]) for kind, rate in rates.items()}
        for level, rates in one["memory"].items()
    }
    return result


def publish(results: dict[str, Any], folder: Path) -> int:
    """Write and print the results; the exit status."""
    path = report.write(results, folder)
    picture = path.with_suffix(".png")
    try:
        plot.draw(results, picture)
    except ImportError:
        print("warning: no plot, matplotlib is not installed", file=sys.stderr)
    text = page.markdown(results, picture.name if picture.exists() else None)
    path.with_suffix(".md").write_text(text)
    console = _console()
    console.print(Markdown(text))
    console.print(f"wrote {path}, .md and .png", highlight=False)
    failures = report.failures(results)
    for failure in failures:
        print(f"error: {failure}", file=sys.stderr)
    return 1 if failures else 0


def _known(rate: float | None) -> float:
    return rate or 0.0


def _console() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=200)


if __name__ == "__main__":
    sys.exit(main())
