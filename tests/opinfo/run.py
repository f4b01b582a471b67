"""``make opinfo``: every entry of PyTorch's operator database for a type, compiled and compared.

Writes ``results.md`` for float32, ``results-DTYPE.md`` for another type, ``results-ARCH.md`` for
GPUs, ``results-gradients.md`` and ``results-gradients-DTYPE.md`` for gradients (committed) and,
with ``--json``, every sample's outcome.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def main() -> int:
    """Run the sweep; the exit status is 1 if anything was wrong or crashed."""
    sys.path[:0] = [str(HERE), str(HERE.parent / "support")]
    from sweep_command import parsed

    arguments = parsed(__doc__, verbose="print every sample's outcome", more=_more)
    warnings.filterwarnings("ignore")
    with tempfile.TemporaryDirectory(prefix="polyblocks-opinfo-") as folder:
        # A cache of its own, and no forks: the workers of the sweep are the isolation.
        os.environ["POLYBLOCKS_CACHE_DIR"] = folder
        os.environ["POLYBLOCKS_ISOLATE"] = "0"
        return _run(arguments)


def _more(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--samples", type=int, default=20, help="samples per entry")
    parser.add_argument("--sample", type=int, metavar="N", help="only N entries, evenly spaced")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--arch", help="of the target; default: the device that is present")
    parser.add_argument("--simulate", action="store_true", help="run GPU builds in the simulator")
    parser.add_argument("--dtype", default="float32", help="of the samples; default: float32")
    parser.add_argument(
        "--gradients",
        action="store_true",
        help="compare gradients of first and, where the entry has them, of second order",
    )
    parser.add_argument(
        "--seconds", type=float, help="begin no entry after this time, and say which are left"
    )


def _run(arguments: argparse.Namespace) -> int:
    import logging

    import torch

    logging.disable(logging.ERROR)
    torch.set_num_threads(1)
    from check import entries, entry_name, spread
    from preloading import preload
    from rich.progress import Progress
    from summary import print_table, write_markdown
    from sweep import Task, sweep, warm_up
    from torch_mlir.extras import fx_importer  # noqa: F401

    from polyblocks.options import CompileOptions
    from polyblocks_torch.importing import importer  # noqa: F401

    options = CompileOptions(
        target=arguments.target, arch=arguments.arch, simulate=arguments.simulate, num_threads=1
    )
    preload(options.target)
    dtype = getattr(torch, arguments.dtype)
    ops = every = entries(dtype, arguments.gradients)
    if arguments.sample:
        ops = every = spread(every, arguments.sample)
    if arguments.entries:
        ops = entries(dtype, arguments.gradients)
        unknown = set(arguments.entries) - {entry_name(op) for op in ops}
        if unknown:
            print(f"no such entry: {', '.join(sorted(unknown))}", file=sys.stderr)
            return 2
        ops = [op for op in ops if entry_name(op) in arguments.entries]
    began = time.monotonic()
    done = _read(arguments.json) if arguments.resume else {}
    if not arguments.entries:
        ops = [op for op in ops if entry_name(op) not in done]
    work = Task(arguments.samples, dtype, options, arguments.gradients)
    warm_up(work)
    with Progress(transient=True) as progress:
        task = progress.add_task("entries", total=len(ops))
        for result in sweep(_in_time(ops, arguments.seconds), arguments.workers, work):
            done[result.name] = result
            progress.update(task, advance=1, description=result.name)
            if arguments.json:
                _write(arguments.json, done)
            if arguments.verbose:
                for index, outcome in enumerate(result.outcomes):
                    print(f"{result.name} {index}: {outcome.kind} {outcome.reason}", flush=True)
    results = [done[name] for name in sorted(done)]
    print_table(results, time.monotonic() - began)
    complete = options.target != "cpu" or not arguments.sample
    left = {entry_name(op) for op in every} - set(done)
    if complete and (not left or arguments.seconds is not None):
        write_markdown(HERE / _file_name(work), results, work, sorted(left))
    return int(any(result.kind in ("wrong", "crashed", "timeout") for result in results))


def _file_name(task: Any) -> str:
    options, kind = task.options, str(task.dtype).removeprefix("torch.")
    where = "" if options.target == "cpu" else f"-{options.arch or 'native'}"
    what = "-gradients" * task.gradients
    return f"results{what}{where}{'' if kind == 'float32' else f'-{kind}'}.md"


def _in_time(ops: list[Any], seconds: float | None) -> Iterator[Any]:
    """The entries, until the time is over."""
    end = math.inf if seconds is None else time.monotonic() + seconds
    return itertools.takewhile(lambda op: time.monotonic() < end, ops)


def _read(path: Path) -> dict[str, Any]:
    from check import Outcome
    from sweep import Result

    rows = json.loads(path.read_text()) if path.exists() else {}
    return {
        name: Result(name, [Outcome(**sample) for sample in row["samples"]], row["seconds"])
        for name, row in rows.items()
    }


def _write(path: Path, results: dict[str, Any]) -> None:
    rows = {
        r.name: {"kind": r.kind, "seconds": r.seconds, "samples": [vars(o) for o in r.outcomes]}
        for r in results.values()
    }
    path.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    sys.exit(main())
