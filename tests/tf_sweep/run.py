"""``make tf-sweep``: TensorFlow's operations, compiled and compared with TensorFlow and its XLA.

Writes ``results.md`` (committed) and, with ``--json``, every sample's outcome.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def main() -> int:
    """Run the sweep; the exit status is 1 if anything was wrong or crashed."""
    sys.path[:0] = [str(HERE), str(HERE.parent / "support")]
    from sweep_command import parsed

    arguments = parsed(__doc__)
    warnings.filterwarnings("ignore")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with tempfile.TemporaryDirectory(prefix="polyblocks-tf-") as folder:
        os.environ["POLYBLOCKS_CACHE_DIR"] = folder
        os.environ["POLYBLOCKS_REPRODUCERS"] = folder
        return _run(arguments)


def _run(arguments: argparse.Namespace) -> int:
    import logging

    import tensorflow as tf

    logging.disable(logging.ERROR)
    tf.get_logger().setLevel("ERROR")
    import elementwise
    import functions
    from check import check
    from forked_sweep import sweep
    from rich.progress import Progress
    from summary import print_table, write_markdown

    from polyblocks import mlir

    mlir.preload()
    chosen = [*functions.entries(), *elementwise.entries()]
    if arguments.entries:
        unknown = set(arguments.entries) - {entry.name for entry in chosen}
        if unknown:
            print(f"no such entry: {', '.join(sorted(unknown))}", file=sys.stderr)
            return 2
        if not arguments.resume:
            chosen = [entry for entry in chosen if entry.name in arguments.entries]
    missing = _resume(chosen, arguments) if arguments.resume else chosen
    began = time.monotonic()
    with Progress(transient=True) as progress:
        task = progress.add_task("entries", total=len(missing))
        for entry in sweep(missing, check, arguments.workers):
            progress.update(task, advance=1, description=entry.name)
            if arguments.json:
                _write(arguments.json, chosen)
            for label, outcome in entry.outcomes:
                if arguments.verbose and outcome.kind != "compiled":
                    print(f"{entry.name} {label}: {outcome.kind} {outcome.reason}", flush=True)
    counts = print_table(chosen, time.monotonic() - began)
    if all(entry.outcomes for entry in chosen) and (arguments.resume or not arguments.entries):
        write_markdown(HERE / "results.md", chosen, functions.uncovered(chosen))
    return int(any(counts.samples[kind] for kind in ("wrong", "crashed", "timeout")))


def _write(path: Path, entries: list[Any]) -> None:
    rows = {e.name: [[label, vars(o)] for label, o in e.outcomes] for e in entries if e.outcomes}
    path.write_text(json.dumps(rows, indent=1))


def _resume(entries: list[Any], arguments: argparse.Namespace) -> list[Any]:
    """Fill in the outcomes of the file; returns the entries that have to run."""
    from forked_sweep import Outcome

    rows = json.loads(arguments.json.read_text()) if arguments.json.exists() else {}
    missing = []
    for entry in entries:
        known = [] if entry.name in arguments.entries else rows.get(entry.name, [])
        if len(known) == len(entry.samples):
            entry.outcomes = [
                (label, Outcome(o["kind"], o["reason"], tuple(o["ops"]), tuple(o["left"])))
                for label, o in known
            ]
        else:
            missing.append(entry)
    return missing


if __name__ == "__main__":
    sys.exit(main())
