"""Compile random programs and compare with PyTorch: `random_programs.py --programs 3000`.

These are programs over all dtypes, a third of them with gradients, in processes of their own. Two
seeds instead of a number of programs, `random_programs.py 0 200`, compile chains of point-wise
operations, reductions and the like on float32; with `--layers` convolutions, pools and the like on
images, with `--typed` what `--programs` compiles.

`--arch sm_90a` runs chains and layers on a simulated GPU, where what the simulator finds is a
failure, too. `--chip lanes-16-team` compiles them for a CPU that does not exist, and runs them on
this one; `--chip all` goes round those CPUs, so that a seed always has the same one. A seed gives
the same program and the same numbers every time.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import layer_fuzz as layers
import program_fuzz as programs
from described_chips import NAMES, described_as
from simulated_chips import CHIPS, on_chip
from typed_sweep import sweep_typed

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
    parser.add_argument("first", type=int, nargs="?", help="seed")
    parser.add_argument("last", type=int, nargs="?", help="the seed behind the last one")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--arch", choices=CHIPS, help="simulated GPU; default: this CPU")
    where.add_argument(
        "--chip",
        choices=(*NAMES, ALL),
        help=f"CPU whose description is taken; {ALL}: seed s has number s mod {len(NAMES)} of them",
    )
    parser.add_argument("--length", type=int, help="steps of a program")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--layers", action="store_true", help="layers on images, not a mixture")
    kind.add_argument("--typed", action="store_true", help="programs over all dtypes")
    kind.add_argument("--programs", type=int, metavar="N", help="the first N programs of --typed")
    parser.add_argument("--workers", type=int, default=2, help="processes of --typed")
    parser.add_argument("--json", type=Path, help="file for the outcome of every typed program")
    parser.add_argument("--resume", action="store_true", help="run what is not in the JSON file")
    parser.add_argument("--shorten", action="store_true", help="also print failures without the "
                        "lines that they do not need")  # fmt: skip
    arguments = parser.parse_args()
    if arguments.programs is not None:
        arguments.first, arguments.last, arguments.typed = 0, arguments.programs, True
    if arguments.last is None:
        parser.error("expected --programs N or two seeds")
    if arguments.resume and not arguments.json:
        parser.error("--resume needs --json FILE")
    if arguments.typed:
        if arguments.arch or arguments.chip:
            parser.error("typed programs are compiled for this CPU")
        return _typed(arguments)
    return _chains(arguments)


def _typed(arguments: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="polyblocks-programs-") as folder:
        os.environ["POLYBLOCKS_CACHE_DIR"] = folder
        os.environ["POLYBLOCKS_REPRODUCERS"] = folder
        # The workers are the isolation.
        os.environ["POLYBLOCKS_ISOLATE"] = "0"
        return min(100, sweep_typed(
            range(arguments.first, arguments.last), arguments.length, arguments.workers,
            arguments.json, arguments.resume, arguments.shorten,
        ))  # fmt: skip


def _chains(arguments: argparse.Namespace) -> int:
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
