"""Calls of GPU programs by several threads at random, on stand-ins for both vendors' drivers.

Streams, addresses that move, graphs, recordings of the caller's, refused launches, two devices: see
``tests/support/random_launches.py``. Every result is checked; at the end nothing is left over.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.support.random_launches import TARGETS, Bench, program, run


def main() -> int:
    """1 if a call of one of the targets was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=10_000, help="of each target")
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--targets", nargs="+", choices=sorted(TARGETS), default=sorted(TARGETS))
    arguments = parser.parse_args()
    failed = 0
    for target in arguments.targets:
        begin = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(target, program(target), Path(folder))
            try:
                counts = run(bench, arguments.calls, arguments.threads, arguments.seed)
            except Exception as error:  # every failure counts, whatever it is
                failed += 1
                print(f"{target}: {type(error).__name__}: {error}", flush=True)
                continue
        names = ("launch", "replay", "update_node", "instantiate")
        told = ", ".join(f"{counts.get(name, 0)} x {name}" for name in names)
        seconds = time.perf_counter() - begin
        print(f"{target}: {arguments.calls} calls right in {seconds:.0f} s: {told}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
