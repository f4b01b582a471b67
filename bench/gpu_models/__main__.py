"""``python -m bench.gpu_models``: whole models on GPUs, by prediction where none is at hand.

Compiles the models in float16 with their weights as arguments, for several chips, and adds up what
their kernels take: those that matrix units multiply in from their machine code, the others as the
mapping predicts them, and what lies between two launches. Each model is compiled in a process of
its own; rows are kept as they come, and a file of results is gone on with.

On a GPU ``bench.gpu.models`` builds the same models, compares their results with float32, and times
them beside the peers.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench import crew
from bench.gpu_models import page, zoo

Json = dict[str, Any]

ARCHS = "sm_80,sm_86,sm_90a,gfx1100"
#: Seconds after which a model has failed.
PATIENCE_S = 900.0
#: Keys of a row. Times are in seconds, sizes in bytes.
KEYS = {
    "model, batch, arch": "what is compiled",
    "launches": "of a call",
    "layer": "launches of a layer; 0 if no sequence of launches comes again",
    "seconds": "predicted, of all kernels and of what lies between them",
    "between": "the part that lies between kernels",
    "floor": "of each kernel its products on the busiest unit or its arrays once, added up",
    "moved": "bytes that kernels move from the cache that all blocks share, or from memory",
    "memory": "those of them that memory moves, see bench.gpu_models.predicted",
    "compulsory": "bytes of each kernel's arrays, once",
    "kernels": "those that take longest first; see bench.gpu_models.predicted",
    "workspace": "of arrays between kernels",
    "artifact": "bytes of it",
    "compile, processor": "time from the module to the artifact, and that of all processes",
    "problem": "why there is nothing of all this",
}


def main(arguments: list[str] | None = None) -> int:
    """Compile and print; the exit status is 1 if a model does not compile."""
    parser = argparse.ArgumentParser(prog="python -m bench.gpu_models", description=__doc__)
    parser.add_argument("--arch", default=ARCHS, help="architectures or chips (%(default)s)")
    parser.add_argument("--batches", default="1,8", help="(%(default)s)")
    parser.add_argument(
        "--only", default="", help="models whose names contain one of these, with | between"
    )
    parser.add_argument("--results", type=Path, help="the JSON of results, with a page beside it")
    parser.add_argument("--again", action="store_true", help="compile what has a row already")
    args = parser.parse_args(arguments)
    parts = args.only.split("|")
    names = [name for name in zoo.MODELS if any(part in name for part in parts)]
    if not names:
        print(f"error: no model is called {args.only!r}; there are {', '.join(zoo.MODELS)}")
        return 1
    wanted = [
        (name, int(batch), arch)
        for batch in args.batches.split(",")
        for arch in args.arch.split(",")
        for name in names
    ]
    results: Json = {"date": datetime.date.today().isoformat(), "rows": []}
    if args.results is not None and args.results.exists():
        results = json.loads(args.results.read_text())
    for each in wanted:
        if not args.again and any(_key(row) == each for row in results["rows"]):
            continue
        rows = [row for row in results["rows"] if _key(row) != each]
        results["rows"] = [*rows, _row(*each)]
        print(page.line(results["rows"][-1]), file=sys.stderr, flush=True)
        if args.results is not None:
            args.results.parent.mkdir(parents=True, exist_ok=True)
            args.results.write_text(json.dumps(results, indent=1) + "\n")
            args.results.with_suffix(".md").write_text(page.markdown(results))
    results["rows"] = [row for row in results["rows"] if _key(row) in wanted]
    print(page.markdown(results))
    return int(any("problem" in row for row in results["rows"]))


def _key(row: Json) -> tuple[str, int, str]:
    return row["model"], row["batch"], row["arch"]


def _row(name: str, batch: int, arch: str) -> Json:
    """From a process of its own, which leaves no memory behind; one that dies leaves a row too."""
    command = [sys.executable, "-m", "bench.gpu_models.worker"]
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        member = crew.Member("compile", 2, {}, Path(folder), command)
        try:
            order = {"name": name, "batch": batch, "arch": arch}
            answer = member.ask("compile", PATIENCE_S, **order)
        finally:
            member.close()
    return {"model": name, "batch": batch, "arch": arch, **answer}


if __name__ == "__main__":
    sys.exit(main())
