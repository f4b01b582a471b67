"""Bisect the random programs of a range of seeds: `bisect_programs.py 0 200`.

The programs are small. So that tiles, threads and split reductions pay all the same, most of them
are compiled for chips with tiny caches, a slow memory and threads that cost nothing.
"""

from __future__ import annotations

import dataclasses
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import pattern_fuzz as patterns
import program_fuzz as programs

import polyblocks_cpu.describe
from polyblocks.bisect import command
from polyblocks.bisect.collect import as_it_is, collect_folder, dumping, folders_of
from polyblocks.bisect.search import Settings, search
from polyblocks.options import CompileOptions
from polyblocks.target import TargetDescription
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch
from polyblocks_cpu.describe import describe

ARCHS = ("native", "x86-64-v3", "x86-64")


def strange_chip(seed: int) -> Callable[[CompileOptions], TargetDescription]:
    """``describe`` for a chip that does not exist; for every fourth seed one that does."""

    def describe_chip(options: CompileOptions) -> TargetDescription:
        right = describe(dataclasses.replace(options, arch=ARCHS[seed % 3]))
        if seed % 4 == 0:
            return right
        divisor = (16, 64, 256)[seed % 4 - 1]
        memory = [
            dataclasses.replace(level, size=level.size // divisor, bandwidth=level.bandwidth / slow)
            for level, slow in zip(right.memory, (1, 4, 64, 1024), strict=False)
        ]
        threads = (4, 3, 16)[seed % 4 - 1]
        parallel = [
            dataclasses.replace(level, size=threads, overhead=0.0)
            if level.name == "team"
            else level
            for level in right.parallel
        ]
        return dataclasses.replace(right, memory=tuple(memory), parallel=tuple(parallel))

    return describe_chip


def program_of(seed: int) -> tuple[Callable[..., Any], list[torch.Tensor], list[str]]:
    """A function, its inputs, and words for it: by turns a mixture and a pattern."""
    if seed % 5 < 2:
        mixture = programs.make(seed)

        def function(*arrays: torch.Tensor) -> list[torch.Tensor]:
            return mixture(*arrays)

        return function, [torch.randn(shape) for shape in mixture.shapes], mixture.text
    pattern = patterns.make(seed)
    return pattern.run, pattern.inputs, [pattern.text]


def bisect(seed: int, work: Path) -> list[str]:
    """What is wrong with the program of this seed, in words; nothing if all is well."""
    function, inputs, _ = program_of(seed)
    problems = []
    # As users compile, with the nests held from pass to pass; dumped after the stages only.
    with dumping(work, passes=False):
        try:
            compiled = polyblocks_jit_torch(compile_options={"strict_target": True})(function)
            compiled(*inputs)
        except Exception as error:  # every failure counts, whatever it is
            problems.append(f"{type(error).__name__}: {error}")
    for number, folder in enumerate(folders_of(work)):
        settings = Settings(seed=seed)
        result = search(as_it_is(folder, CompileOptions()), settings)
        if result.bad is None:
            continue
        problems += [command.verdict(result), result.bad.reason]
        scratch = work / f"again-{number}"
        scratch.mkdir()
        result = search(collect_folder(folder, CompileOptions(), scratch), settings)
        problems.append(command.verdict(result))
    return problems


def main() -> int:
    """Print what differs; the exit status is the number of such programs, at most 100."""
    first, last = int(sys.argv[1]), int(sys.argv[2])
    bad = 0
    begin = time.monotonic()
    for seed in range(first, last):
        polyblocks_cpu.describe.describe = strange_chip(seed)
        with tempfile.TemporaryDirectory() as folder:
            try:
                problems = bisect(seed, Path(folder))
            except Exception as error:
                problems = [f"{type(error).__name__}: {error}"]
        torch._dynamo.reset()
        if problems:
            bad += 1
            print(f"seed {seed}:", *problems, *program_of(seed)[2], sep="\n  ", flush=True)
    print(f"{last - first - bad} passed, {bad} failed, {time.monotonic() - begin:.0f} s")
    return min(bad, 100)


if __name__ == "__main__":
    sys.exit(main())
