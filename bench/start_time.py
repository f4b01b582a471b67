"""First calls of ResNet-18 in new processes: ``python -m bench.start_time``.

What counts comes on top of Dynamo with a backend that runs nothing, in a process whose imports are
warm. *Cold* starts with an empty cache, *warm* with what the cold start left there. A first call
less a second one is the time of everything but the work itself.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

Json = dict[str, Any]
#: Seconds on top of Dynamo, at most.
BARS = {"cold": 6.0, "warm": 0.15}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the exit status is 1 if a bar does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--worker", choices=["nothing", "polyblocks"], help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    if args.worker:
        print(json.dumps(worker(args.worker)))
        return 0
    print("| start | Dynamo alone, s | polyblocks, s | on top, s | at most | MLIR loaded |")
    print("|---|---|---|---|---|---|")
    good = True
    rounds = [one_round() for _ in range(args.rounds)]
    for start, bar in BARS.items():
        alone = [row["nothing"]["seconds"] for row in rounds]
        ours = [row[start]["seconds"] for row in rounds]
        extra = statistics.median(a - b for a, b in zip(ours, alone, strict=True))
        mlir = any(row[start]["mlir"] for row in rounds)
        times = f"{statistics.median(alone):.2f} | {statistics.median(ours):.2f} | {extra:.2f}"
        print(f"| {start} | {times} | {bar:g} | {mlir} |")
        good &= extra <= bar and not (start == "warm" and mlir)
    return 0 if good else 1


def one_round() -> Json:
    """The three starts, one after the other."""
    with tempfile.TemporaryDirectory(prefix="bench-start-") as folder:
        return {
            name: in_process(backend, folder)
            for name, backend in (
                ("cold", "polyblocks"),
                ("nothing", "nothing"),
                ("warm", "polyblocks"),
            )
        }


def in_process(backend: str, folder: str) -> Json:
    """What :func:`worker` measures in a new process with the cache in ``folder``."""
    command = [sys.executable, "-m", "bench.start_time", "--worker", backend]
    environment = os.environ | {"POLYBLOCKS_CACHE_DIR": folder}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    row: Json = json.loads(done.stdout.splitlines()[-1])
    return row


def worker(backend: str) -> Json:
    """Seconds of the first call less the second; whether MLIR was loaded."""
    import torch

    from bench import empty_backend
    from bench.programs.resnet import ResNet18

    def small(x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x + 1)

    make = empty_backend.captured if backend == "nothing" else _with_ours
    with torch.no_grad():
        make(small)(torch.ones(3))
        call = make(ResNet18().eval())
        image = torch.rand(1, 3, 224, 224)
        times = []
        for _ in range(2):
            begin = time.perf_counter()
            call(image)
            times.append(time.perf_counter() - begin)
    return {"seconds": times[0] - times[1], "mlir": "torch_mlir" in sys.modules}


def _with_ours(function: Callable[..., Any]) -> Callable[..., Any]:
    from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

    return polyblocks_jit_torch(compile_options={"strict_target": True})(function)


if __name__ == "__main__":
    sys.exit(main())
