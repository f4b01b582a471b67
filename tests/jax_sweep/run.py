"""``make jax-sweep``: every primitive of ``jax.lax``, compiled and compared with ``jax.jit``.

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

    arguments = parsed(__doc__, "primitives")
    warnings.filterwarnings("ignore")
    with tempfile.TemporaryDirectory(prefix="polyblocks-jax-") as folder:
        os.environ["POLYBLOCKS_CACHE_DIR"] = folder
        os.environ["POLYBLOCKS_REPRODUCERS"] = folder
        # The workers of the sweep are the isolation.
        os.environ["POLYBLOCKS_ISOLATE"] = "0"
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
        return _run(arguments)


def _run(arguments: argparse.Namespace) -> int:
    import logging

    import jax

    logging.disable(logging.ERROR)
    jax.config.update("jax_enable_x64", True)
    from entries import entries
    from rich.progress import Progress
    from summary import print_table, write_markdown
    from sweep import sweep

    from polyblocks import mlir

    # Here, once, what every forked worker would load by itself.
    mlir.preload()
    every = entries()
    chosen = every
    if arguments.entries:
        unknown = set(arguments.entries) - {entry.name for entry in every}
        if unknown:
            print(f"no such primitive: {', '.join(sorted(unknown))}", file=sys.stderr)
            return 2
        chosen = [entry for entry in every if entry.name in arguments.entries]
    done = _read(arguments.json) if arguments.resume else {}
    if not arguments.entries:
        chosen = [entry for entry in every if entry.name not in done]
    began = time.monotonic()
    with Progress(transient=True) as progress:
        task = progress.add_task("primitives", total=len(chosen))
        for result in sweep(chosen, arguments.workers):
            done[result.name] = result
            progress.update(task, advance=1, description=result.name)
            if arguments.json:
                _write(arguments.json, done)
            if arguments.verbose:
                for label, outcome in result.outcomes:
                    if outcome.kind != "compiled":
                        print(f"{result.name}: {label}: {outcome.kind} {outcome.reason}")
    results = [done[entry.name] for entry in every if entry.name in done]
    print_table(results, time.monotonic() - began)
    if len(results) == len(every):
        write_markdown(HERE / "results.md", results)
    return int(any(r.kind in ("wrong", "crashed", "timeout") for r in results))


def _read(path: Path) -> dict[str, Any]:
    from check import Outcome
    from sweep import Result

    rows = json.loads(path.read_text()) if path.exists() else {}
    return {
        name: Result(
            name,
            [(s["label"], Outcome(s["kind"], s["reason"])) for s in row["samples"]],
            row["seconds"],
        )
        for name, row in rows.items()
    }


def _write(path: Path, results: dict[str, Any]) -> None:
    rows = {
        r.name: {
            "kind": r.kind,
            "seconds": r.seconds,
            "samples": [{"label": label, **vars(o)} for label, o in r.outcomes],
        }
        for r in results.values()
    }
    path.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    sys.exit(main())
