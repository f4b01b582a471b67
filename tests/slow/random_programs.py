"""Compile the random programs of a range of seeds: `random_programs.py 0 200`."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import program_fuzz as programs

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch


def main() -> int:
    """Print what differs; the exit status is the number of such programs, at most 100."""
    first, last = int(sys.argv[1]), int(sys.argv[2])
    bad = 0
    for seed in range(first, last):
        try:
            problems = programs.check(seed, polyblocks_jit_torch)
        except Exception as error:  # every failure counts, whatever it is
            problems = [f"{type(error).__name__}: {error}"]
        torch._dynamo.reset()
        if problems:
            bad += 1
            print(f"seed {seed}:", *problems, *programs.make(seed).text, sep="\n  ")
    print(f"{last - first - bad} passed, {bad} failed")
    return min(bad, 100)


if __name__ == "__main__":
    sys.exit(main())
