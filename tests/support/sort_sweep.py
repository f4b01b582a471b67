"""The command line of sweeps of random sorts, on this machine's CPU or on a simulated GPU."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

#: The target of each architecture.
TARGETS = {"sm_90a": "nvgpu", "gfx1100": "amdgpu"}
#: Elements of a row on a simulated GPU, at most.
SIMULATED = 300

#: Of a sample and the compiler's options: how its results differ; empty if they do not.
Outcome = Callable[[dict[str, Any]], str]


def sweep(
    description: str | None,
    count: int,
    longest: int,
    draw: Callable[[int, int], tuple[str, Outcome]],
) -> int:
    """Run the samples that the command line asks for; 1 if one is wrong, else 0.

    Args:
        description: of the program.
        count: samples, by default.
        longest: elements of a row on the CPU, by default.
        draw: of a number and the longest row: what the sample is, and its outcome.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--count", type=int, default=count)
    parser.add_argument("--first", type=int, default=0, help="number of the first sample")
    parser.add_argument("--arch", choices=TARGETS, help="default: this machine's CPU")
    parser.add_argument("--longest", type=int, help="elements of a row")
    arguments = parser.parse_args()
    options: dict[str, Any] = {"strict_target": True}
    if arguments.arch:
        options |= {"target": TARGETS[arguments.arch], "arch": arguments.arch, "simulate": True}
    row = arguments.longest or (SIMULATED if arguments.arch else longest)
    wrong = 0
    for number in range(arguments.first, arguments.first + arguments.count):
        text, outcome = draw(number, row)
        try:
            found = outcome(options)
        except Exception as failure:
            found = str(failure).partition("\n")[0]
        if found:
            wrong += 1
            print(f"{number}: {text}: {found}", flush=True)
    print(f"{arguments.count} samples, {wrong} wrong")
    return int(wrong > 0)
