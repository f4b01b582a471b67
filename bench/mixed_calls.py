"""Compiled functions and eager operators by turns: ``python -m bench.mixed_calls``.

A program that is compiled in parts calls both. If each had a team of threads of its own, the ones
that wait for work, spinning, would take the cores from the other ones. Measured are medians of
calls: of each alone, of each by turns with one thread that reads and writes as much memory (so
that the caches hold as little of it as beside the other one), and of both by turns. The last is
compared with the second, and with the first where arrays are larger than the caches anyway.
Inductor's functions run on PyTorch's own team.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import report

CALLS = 200
WARM_UP = 10
ROUNDS = 3
#: Of 1024 numbers each: 16 MB, which some caches hold, and 64 MB, with a quarter of the calls.
ROWS = (4096, 16384)
#: The most that a call may take by turns, see :attr:`Times.ratio`.
BAR = 1.15


@dataclass(frozen=True)
class Times:
    """Median milliseconds of one of two functions: alone, with other data between, by turns."""

    alone: float
    apart: float
    by_turns: float

    @property
    def ratio(self) -> float:
        """By turns as a multiple of the time with as much other data between."""
        return self.by_turns / self.apart


@dataclass(frozen=True)
class Row:
    """A compiled function, and the operator beside it."""

    compiler: str
    rows: int
    compiled: Times
    eager: Times


def medians(functions: Sequence[Callable[[], Any]], calls: int) -> list[float]:
    """Median milliseconds of each, called one after the other."""
    times: list[list[float]] = [[] for _ in functions]
    for turn in range(calls + WARM_UP):
        for function, found in zip(functions, times, strict=True):
            begin = time.perf_counter()
            function()
            if turn >= WARM_UP:
                found.append((time.perf_counter() - begin) * 1e3)
    return [statistics.median(found) for found in times]


def measure(
    compiler: str,
    count: int,
    compiled: Callable[[], Any],
    eager: Callable[[], Any],
    passing: Callable[[], Any],
) -> Row:
    """``passing`` stands for the memory that each of the others uses. Least of several medians."""
    orders = [[compiled], [eager], [compiled, passing], [eager, passing], [compiled, eager]]
    calls = CALLS * ROWS[0] // count
    rounds = [[medians(functions, calls) for functions in orders] for _ in range(ROUNDS)]
    least = [
        [min(column) for column in zip(*found, strict=True)] for found in zip(*rounds, strict=True)
    ]
    (alone,), (eager_alone,), (apart, _), (eager_apart, _), (turns, eager_turns) = least
    return Row(
        compiler,
        count,
        Times(alone, apart, turns),
        Times(eager_alone, eager_apart, eager_turns),
    )


def rows(count: int) -> list[Row]:
    """A layer norm of so many rows (ours and Inductor's) beside ``relu`` of as many."""
    import numpy as np
    import torch

    from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

    def layer_norm(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.layer_norm(x, (1024,))

    x, y = torch.randn(count, 1024), torch.randn(count, 1024)
    ours = polyblocks_jit_torch(layer_norm, compile_options={"strict_target": True})
    theirs = torch.compile(layer_norm, dynamic=False)
    source, target = np.ones((2, *x.shape), np.float32)

    def passing() -> None:
        np.maximum(source, 0, out=target)

    with torch.no_grad():
        return [
            measure("polyblocks", count, lambda: ours(x), y.relu, passing),
            measure("Inductor", count, lambda: theirs(x), y.relu, passing),
        ]


def table(found: Sequence[Row]) -> str:
    """A Markdown table of the times and ratios."""
    lines = [
        "| compiler | function | rows | alone, ms | other memory between | by turns | ratio "
        "| to alone |",
        "|---" * 8 + "|",
    ]
    for row in found:
        for name, times in (("layer norm", row.compiled), ("eager relu", row.eager)):
            numbers = (times.alone, times.apart, times.by_turns)
            cells = [row.compiler, name, str(row.rows), *(f"{ms:.3f}" for ms in numbers)]
            cells += [f"{times.ratio:.2f}", f"{times.by_turns / times.alone:.2f}"]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the exit status is 1 if a ratio of ours is over the bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, help="folder for the page; default: none")
    args = parser.parse_args(arguments)
    found = [row for count in ROWS for row in rows(count)]
    print(table(found), end="")
    if args.results:
        import torch

        head = report.header(1, torch.get_num_threads())
        args.results.mkdir(parents=True, exist_ok=True)
        title = (
            f"# Compiled and eager calls by turns, {head['date']}, {head['machine']['cpu']}, "
            f"{head['machine']['threads']} threads\n\n"
        )
        Path(f"{report.place(head, args.results)}-mixed-calls.md").write_text(title + table(found))
    ours = [row for row in found if row.compiler == "polyblocks"]
    worst = max(times.ratio for row in ours for times in (row.compiled, row.eager))
    return 0 if worst <= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
