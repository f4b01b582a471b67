"""Compile the random programs of a range of seeds: `random_programs.py 0 200`.

`--arch sm_90a` runs them on a simulated GPU, where what the simulator finds is a failure, too.
`--chip lanes-16-team` compiles them for a CPU that does not exist, and runs them on this one;
`--chip all` goes round those CPUs, so that a seed always has the same one. With `--layers` the
programs are convolutions, pools and the like on images. A seed gives the same program and the same
numbers every time.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import layer_fuzz as layers
import program_fuzz as programs
from described_chips import NAMES, described_as
from simulated_chips import CHIPS, on_chip

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

#: Stands for the chips by turns.
ALL = "all"


def place(arguments: argparse.Namespace, seed: int) -> AbstractContextManager[Any]:
    """Where the program of this seed is compiled for and runs."""
    if arguments.arch:
        return on_chip(arguments.arch)
    chip = chip_of(arguments.chip, seed)
    return described_as(chip) if chip else nullcontext()


def chip_of(asked: str | None, seed: int) -> str | None:
    """The name of the CPU that the program of this seed is compiled for; None for this one."""
    return NAMES[seed % len(NAMES)] if asked == ALL else asked


def main() -> int:
    """Print what differs; the exit status is the number of such programs, at most 100."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("first", type=int, help="seed")
    parser.add_argument("last", type=int, help="the seed behind the last one")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--arch", choices=CHIPS, help="simulated GPU; default: this CPU")
    where.add_argument(
        "--chip",
        choices=(*NAMES, ALL),
        help=f"CPU whose description is taken; {ALL}: seed s has number s mod {len(NAMES)} of them",
    )
    parser.add_argument("--length", type=int, help="steps of a program")
    parser.add_argument("--layers", action="store_true", help="layers on images, not a mixture")
    arguments = parser.parse_args()
    make = layers.make if arguments.layers else programs.make
    length = {} if arguments.length is None else {"length": arguments.length}
    bad = 0
    for seed in range(arguments.first, arguments.last):
        program = make(seed, **length)
        try:
            with place(arguments, seed):
                problems = programs.check(program, polyblocks_jit_torch, seed)
        except Exception as error:  # every failure counts, whatever it is
            problems = [f"{type(error).__name__}: {error}"]
        torch._dynamo.reset()
        if problems:
            bad += 1
            chip = chip_of(arguments.chip, seed)
            on = f" on {chip}" if chip else ""
            print(f"seed {seed}{on}:", *problems, *program.text, sep="\n  ", flush=True)
    print(f"{arguments.last - arguments.first - bad} passed, {bad} failed")
    return min(bad, 100)


if __name__ == "__main__":
    sys.exit(main())
