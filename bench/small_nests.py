"""What a nest costs beside its work: ``python -m bench.small_nests``.

Fifty nests of 8 x 8 elements transpose each other's result, so that every thread reads what others
wrote: in a row, and as a loop of the program with two nests. The table has microseconds of a call
by threads; the last column is more threads than the process has cores. ``--framework torch`` runs
them on PyTorch's team, else it is LLVM's.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
import time
from collections.abc import Sequence

import numpy as np

from polyblocks import mlir
from polyblocks.artifact import Artifact
from polyblocks.options import CompileOptions
from polyblocks.runtime.threads import available_cpus
from polyblocks_cpu.describe import describe
from polyblocks_cpu.load import CpuExecutable, load_artifact
from polyblocks_cpu.lower import lower_program

NESTS = 50
SIDE = 8
ROUNDS = 7
#: Seconds of one round.
LENGTH = 0.05


def program(looped: bool) -> str:
    """A module as S3 hands it over."""
    type_ = f"memref<{SIDE}x{SIDE}xf32>"
    nests = []
    for number in range(2 if looped else NESTS):
        source, target = ("%x", "%y") if number % 2 == 0 else ("%y", "%x")
        nests.append(f"""
        affine.parallel (%i) = (0) to ({SIDE}) {{
          affine.for %j = 0 to {SIDE} {{
            %v = affine.load {source}[%j, %i] : {type_}
            affine.store %v, {target}[%i, %j] : {type_}
          }}
        }} {{polyblocks.kernel = "k", polyblocks.level = "team"}}""")
    body = "\n".join(nests)
    if looped:
        body = f'affine.for %t = 0 to {NESTS // 2} {{ {body} }} {{polyblocks.region = "loop"}}'
    return f"func.func @main(%x: {type_}, %y: {type_}) {{ {body} return }}"


def loaded(text: str) -> CpuExecutable:
    """A module, compiled for this machine."""
    options = CompileOptions()
    artifact = lower_program(mlir.parse(text), describe(options), options)
    return load_artifact(Artifact({**artifact.manifest, "arch": "native"}, artifact.blobs))


def microseconds(executable: CpuExecutable, threads: int) -> float:
    """Of a call, the fastest of several rounds."""
    x, y = np.ones((2, SIDE, SIDE), np.float32)
    pointers = bytes((ctypes.c_uint64 * 2)(x.ctypes.data, y.ctypes.data))
    best = float("inf")
    for _ in range(ROUNDS):
        calls, begin = 0, time.perf_counter()
        while (passed := time.perf_counter() - begin) < LENGTH or not calls:
            executable.entry(pointers, threads)
            calls += 1
        best = min(best, passed / calls)
    return best * 1e6


def table() -> str:
    """A Markdown table of the times."""
    cores = available_cpus()
    threads = [*dict.fromkeys((1, 2, cores)), 4 * cores]
    lines = [
        f"| {NESTS} nests | " + " | ".join(f"{n} threads, µs" for n in threads) + " |",
        "|---" * (len(threads) + 1) + "|",
    ]
    for name, looped in (("in a row", False), ("in a loop", True)):
        executable = loaded(program(looped))
        times = [microseconds(executable, n) for n in threads]
        lines.append(f"| {name} | " + " | ".join(f"{t:.1f}" for t in times) + " |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--framework", choices=["torch"])
    if parser.parse_args(arguments).framework:
        import torch

        # The runtime starts with the first operator that needs it.
        torch.ones(600_000).relu()
    print(table(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
