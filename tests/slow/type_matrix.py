"""Every element-wise, storing and converting operation of PyTorch × all pairs of types.

`type_matrix.py` runs all; `type_matrix.py uint8 int64` those of two types. Second operands are
arguments, constants made in the function (of different, of equal, of one element) and Python
numbers. Integers are compared bit by bit. A process for each processor takes pairs of types. See
tests/support/type_matrix.py.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import type_matrix as matrix

import polyblocks
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

OPTIONS = {"target": "cpu"}


def run(pair: tuple[torch.dtype, torch.dtype | None]) -> tuple[int, list[str]]:
    """How many cases a pair of types has, and what differs."""
    first, second = pair
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    given = matrix.arguments(first, second)
    known = matrix.defined(matrix.cases(first, second), given)
    problems: list[str] = []
    results = compiled([case for case, _ in known], given)
    for position, (case, eager) in enumerate(known):
        ours = compiled([case], given) if isinstance(results, Exception) else [results[position]]
        if isinstance(ours, Exception):
            problem = f"{type(ours).__name__}: {ours}"
        else:
            problem = matrix.difference(ours[0], eager)
        if problem is not None:
            problems.append(f"{case.name}: {problem}"[:300])
    return len(known), problems


def compiled(cases: list[Any], given: Any) -> Any:
    """The results of some cases, or the exception that there was."""
    torch._dynamo.reset()
    try:
        function = polyblocks_jit_torch(compile_options=OPTIONS)(matrix.program(cases))
        return function(*(x.clone() for x in given))
    except Exception as error:  # every failure counts, whatever it is
        return error


def main() -> int:
    """Print what differs; the exit status tells whether anything does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("first", nargs="?", help="a type, e.g. uint8; default: all")
    parser.add_argument("second", nargs="?", help="the other one, or `number`; default: all")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    asked = parser.parse_args()
    pairs = [
        (a, b)
        for a in matrix.DTYPES
        for b in (None, *matrix.DTYPES)
        if asked.first in (None, str(a)[6:])
        and asked.second in (None, str(b)[6:] if b is not None else "number")
    ]
    begin, total, wrong = time.perf_counter(), 0, 0
    # Forked processes would share the threads of the compiler.
    with multiprocessing.get_context("spawn").Pool(asked.jobs) as pool:
        results = pool.imap(run, pairs)
        for (first, second), (count, problems) in zip(pairs, results, strict=True):
            total, wrong = total + count, wrong + len(problems)
            name = f"{str(first)[6:]} × {'numbers' if second is None else str(second)[6:]}"
            for problem in problems:
                print(f"{name}: {problem}", flush=True)
    seconds = time.perf_counter() - begin
    print(f"{total} cases, {wrong} wrong, {seconds:.0f} s (polyblocks {polyblocks.__version__})")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
