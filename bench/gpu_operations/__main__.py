"""``python -m bench.gpu_operations``: predicted times of operations on a GPU over their floors.

Compiles several hundred operations for a chip, and sorts them by what the cost model predicts over
the least that any kernel could take (bytes, products, point-wise arithmetic, the smallest
kernel). No GPU is needed: it is the list to work from where none is at hand.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench import crew
from bench.gpu_operations import cases, page

Json = dict[str, Any]

#: Seconds after which an operation has failed.
PATIENCE_S = 120.0
#: Keys of a row. Times are in seconds.
KEYS = {
    "name": "of the operation",
    "floor": "the least time",
    "bytes": "of operands and results, each as often as it has to be moved",
    "flops": "of products",
    "operations": "time of the arithmetic of point-wise kernels, at the chip's rate",
    "predicted": "by the cost model, all kernels together; null if it knows no time of some kernel",
    "kernels": "of each name, kind, calls, threads, predicted, bound, unit and resources",
    "compile": "from the function to the artifact",
    "problem": "why there is nothing of all this",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Compile and print; the exit status is 1 if an operation that is named is not known."""
    parser = argparse.ArgumentParser(prog="python -m bench.gpu_operations", description=__doc__)
    parser.add_argument("--arch", default="h200", help="architecture or chip (%(default)s)")
    parser.add_argument(
        "--only", default="", help="operations whose names contain one of these, with | between"
    )
    parser.add_argument("--processes", type=int, default=2, help="that compile (%(default)s)")
    parser.add_argument("--results", type=Path, help="folder for the results; default: none")
    args = parser.parse_args(arguments)
    try:
        names = [each.name for each in cases.named(args.only)]
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    results: Json = {
        "date": datetime.date.today().isoformat(),
        "arch": args.arch,
        "rows": swept(names, args.arch, args.processes),
    }
    text = page.markdown(results)
    print(text)
    if args.results is not None:
        args.results.mkdir(parents=True, exist_ok=True)
        stem = args.results / f"{results['date']}-gpu-operations-{args.arch}"
        stem.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n")
        stem.with_suffix(".md").write_text(text)
    return 0


def swept(names: Sequence[str], arch: str, processes: int) -> list[Json]:
    """The rows of operations, in their order; a process that dies leaves a row that says so."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        parts = [names[start::processes] for start in range(processes)]
        with ThreadPoolExecutor(processes) as pool:
            answers = [
                pool.submit(_rows, part, arch, f"compile{number}", Path(folder))
                for number, part in enumerate(parts)
            ]
            found = {row["name"]: row for answer in answers for row in answer.result()}
    return [found[name] for name in names]


def _rows(names: Sequence[str], arch: str, log: str, folder: Path) -> list[Json]:
    # Each order is a new function: isolated compilations would be one more process each.
    environment = {"POLYBLOCKS_ISOLATE": "0"}
    command = [sys.executable, "-m", "bench.gpu_operations.worker"]
    member = crew.Member(log, 1, environment, folder, command)
    rows = []
    try:
        for name in names:
            rows.append({"name": name, **member.ask("compile", PATIENCE_S, name=name, arch=arch)})
            print(page.line(rows[-1]), file=sys.stderr, flush=True)
    finally:
        member.close()
    return rows


if __name__ == "__main__":
    sys.exit(main())
