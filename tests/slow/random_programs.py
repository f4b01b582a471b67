"""Compile the random programs of a range of seeds: `random_programs.py 0 200`.

`--arch sm_90a` runs them on a simulated GPU, where what the simulator finds is a failure, too.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import program_fuzz as programs
from simulated_chips import CHIPS, on_chip

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch


def main() -> int:
    """Print what differs; the exit status is the number of such programs, at most 100."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("first", type=int, help="seed")
    parser.add_argument("last", type=int, help="the seed behind the last one")
    parser.add_argument("--arch", choices=CHIPS, help="simulated GPU; default: the CPU")
    parser.add_argument("--length", type=int, default=programs.LENGTH, help="steps of a program")
    arguments = parser.parse_args()
    bad = 0
    for seed in range(arguments.first, arguments.last):
        try:
            with on_chip(arguments.arch) if arguments.arch else contextlib.nullcontext():
                problems = programs.check(seed, polyblocks_jit_torch, arguments.length)
        except Exception as error:  # every failure counts, whatever it is
            problems = [f"{type(error).__name__}: {error}"]
        torch._dynamo.reset()
        if problems:
            bad += 1
            text = programs.make(seed, arguments.length).text
            print(f"seed {seed}:", *problems, *text, sep="\n  ", flush=True)
    print(f"{arguments.last - arguments.first - bad} passed, {bad} failed")
    return min(bad, 100)


if __name__ == "__main__":
    sys.exit(main())
