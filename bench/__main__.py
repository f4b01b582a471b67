"""``python -m bench``: time every case against its peers and write the results."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown

RESULTS = Path(__file__).parent / "results"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; the exit status is 1 if a result is wrong or a case does not compile here."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each peer (default: 5)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for the results")
    args = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="bench-") as caches:
        # First calls compile: nobody is to find the work of an earlier run in a cache.
        os.environ["POLYBLOCKS_CACHE_DIR"] = f"{caches}/polyblocks"
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{caches}/inductor"
        return run(args.only, args.rounds, args.results)


def run(only: str, rounds: int, folder: Path) -> int:
    """Measure the chosen cases, write and print the results."""
    import torch

    from bench import measure, peers, report
    from bench.cases import CASES, floor_bytes

    chosen = [case for case in CASES if only in case.name]
    if not chosen:
        names = ", ".join(case.name for case in CASES)
        print(f"error: no case contains '{only}'; the cases are {names}", file=sys.stderr)
        return 1
    console = Console()
    if not console.is_terminal:
        console = Console(width=160)
    results = report.header(rounds)
    with torch.no_grad():
        for case in chosen:
            console.print(f"measuring {case.name}", highlight=False)
            inputs = case.inputs()
            expected = case.expected(inputs)
            nbytes = floor_bytes(inputs, expected)
            contestants = [make(case.function) for make in peers.PEERS.values()]
            contestants.append(peers.copy(nbytes))
            timings = measure.compare(contestants, inputs, expected, rounds=rounds)
            report.add_case(results, case, nbytes, timings)
    places = report.write(results, folder)
    console.print(Markdown(report.markdown(results)))
    console.print(f"wrote {places[0]} and {places[1].name}", highlight=False)
    failures = report.failures(results)
    for failure in failures:
        print(f"error: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
