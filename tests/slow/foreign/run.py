"""``make foreign``: programs as users write them, in PyTorch, JAX and TensorFlow.

They are about what compilers get wrong without a word: memory that is shared, numbers that wrap
around, NaN that chooses, state that changes between calls. Each is compared with the framework
without a compiler. Those that are known to fail are named with the reason, and count as failures.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent

FRAMEWORKS = ("torch", "jax", "tf")
WORDS = {
    "compiled": "right",
    "fallback": "right, partly run by the framework",
    "wrong": "wrong",
    "crashed": "died",
    "timeout": "died",
    "skipped": "refused by the framework's own compiler, too",
}


def main() -> int:
    """Run all cases, or those named; the exit status is 1 if one is wrong or died."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names of cases; default: all")
    parser.add_argument("--framework", choices=FRAMEWORKS, help="default: all, one by one")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--verbose", action="store_true", help="print what fell back, too")
    parser.add_argument("--json", type=Path, help="file for the outcome of every case")
    arguments = parser.parse_args()
    if arguments.framework is None:
        return _all(arguments)
    warnings.filterwarnings("ignore")
    with tempfile.TemporaryDirectory(prefix="polyblocks-foreign-") as folder:
        os.environ["POLYBLOCKS_CACHE_DIR"] = folder
        os.environ["POLYBLOCKS_REPRODUCERS"] = folder
        # The workers are the isolation.
        os.environ["POLYBLOCKS_ISOLATE"] = "0"
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        sys.path[:0] = [str(HERE), str(HERE.parents[1] / "support")]
        return _run(arguments)


def _all(arguments: argparse.Namespace) -> int:
    """One process per framework."""
    began, kinds = time.monotonic(), Counter[str]()
    known: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        rows: dict[str, Any] = {}
        for framework in FRAMEWORKS:
            path = Path(folder, framework)
            command = [sys.executable, str(Path(__file__)), "--framework", framework]
            command += ["--workers", str(arguments.workers), "--json", str(path)]
            command += ["--verbose"] * arguments.verbose
            subprocess.run([*command, *arguments.names], check=False)
            if not path.exists():
                print(f"the programs of {framework} did not run to the end", file=sys.stderr)
                return 1
            rows |= json.loads(path.read_text())
    kinds.update(row["kind"] for row in rows.values())
    known = [name for name, row in rows.items() if row["known"]]
    print(f"in all {_said(kinds)}; {len(known)} known; {time.monotonic() - began:.0f} s")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))
    return int(any(kinds[kind] for kind in ("wrong", "crashed", "timeout")))


def _run(arguments: argparse.Namespace) -> int:
    import logging

    logging.disable(logging.ERROR)
    began, framework = time.monotonic(), arguments.framework
    from forked_sweep import Entry, sweep
    from known import KNOWN
    from preloading import preload
    from suites import load

    check, groups = load(framework)
    preload("cpu")
    if framework == "torch":
        importlib.import_module("torch").set_num_threads(1)
        importlib.import_module("torch_mlir.extras.fx_importer")
    entries = []
    for group in groups:
        names = [f"{framework}/{case.name}" for case in group.cases]
        chosen = [
            (name, case)
            for name, case in zip(names, group.cases, strict=True)
            if not arguments.names or any(part in name for part in arguments.names)
        ]
        entries.append(Entry(group.name, chosen))
    kinds, rows = Counter[str](), {}
    for entry in sweep(entries, check, arguments.workers):
        for name, outcome in entry.outcomes:
            kinds[outcome.kind] += 1
            bad = outcome.kind in ("wrong", "crashed", "timeout")
            why = KNOWN.get(name, "")
            rows[name] = {"kind": outcome.kind, "reason": outcome.reason, "known": bad and why}
            if bad or arguments.verbose and outcome.kind != "compiled":
                said = f"known ({why}): " if why else ""
                print(f"{name}: {said}{WORDS[outcome.kind]}: {outcome.reason}", flush=True)
            elif why:
                print(f"{name}: is right; take it out of known.py", flush=True)
    print(f"{framework}: {_said(kinds)}; {time.monotonic() - began:.0f} s", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))
    return int(any(kinds[kind] for kind in ("wrong", "crashed", "timeout")))


def _said(kinds: Counter[str]) -> str:
    said = Counter[str]()
    for kind, count in kinds.items():
        said[WORDS[kind]] += count
    order = dict.fromkeys(WORDS.values())
    return f"{kinds.total()} programs: " + ", ".join(f"{said[w]} {w}" for w in order if said[w])


if __name__ == "__main__":
    sys.exit(main())
