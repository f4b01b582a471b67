"""Compiled functions and eager operators by turns: ``python -m bench.mixed_calls``.

A program that is compiled in parts calls both. If each had a team of threads of its own, the ones
that wait for work, spinning, would take the cores from the other ones. Measured are medians of
calls of each alone, and by turns; Inductor's functions run on PyTorch's own team.
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
#: The most that a call may take by turns, as a multiple of its time alone.
BAR = 1.15


@dataclass(frozen=True)
class Row:
    """Median milliseconds of a compiled function and of the operator beside it."""

    compiler: str
    compiled: float
    compiled_by_turns: float
    eager: float
    eager_by_turns: float

    @property
    def ratios(self) -> tuple[float, float]:
        """By turns as multiples of alone: compiled, eager."""
        return self.compiled_by_turns / self.compiled, self.eager_by_turns / self.eager


def by_turns(functions: Sequence[Callable[[], Any]], calls: int) -> list[float]:
    """Median milliseconds of each, called one after the other."""
    for function in functions:
        for _ in range(10):
            function()
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(calls):
        for function, found in zip(functions, times, strict=True):
            begin = time.perf_counter()
            function()
            found.append((time.perf_counter() - begin) * 1e3)
    return [statistics.median(found) for found in times]


def measure(compiler: str, compiled: Callable[[], Any], eager: Callable[[], Any]) -> Row:
    """Each alone, then both; twice, of which the smaller medians count."""
    rounds = [
        [
            *by_turns([compiled], CALLS),
            *by_turns([eager], CALLS),
            *by_turns([compiled, eager], CALLS),
        ]
        for _ in range(2)
    ]
    alone, eager_alone, turns, eager_turns = (min(pair) for pair in zip(*rounds, strict=True))
    return Row(compiler, alone, turns, eager_alone, eager_turns)


def rows() -> list[Row]:
    """A layer norm of 4096x1024 (ours and Inductor's) beside ``relu`` of 16 MB."""
    import torch

    from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

    def layer_norm(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.layer_norm(x, (1024,))

    x, y = torch.randn(4096, 1024), torch.randn(4096, 1024)
    ours = polyblocks_jit_torch(layer_norm, compile_options={"strict_target": True})
    theirs = torch.compile(layer_norm)
    with torch.no_grad():
        return [
            measure("polyblocks", lambda: ours(x), y.relu),
            measure("Inductor", lambda: theirs(x), y.relu),
        ]


def table(found: Sequence[Row]) -> str:
    """A Markdown table of the times and ratios."""
    lines = [
        "| compiler | layer norm alone, ms | by turns | ratio | eager relu alone, ms | by turns "
        "| ratio |",
        "|---" * 7 + "|",
    ]
    for row in found:
        compiled, eager = row.ratios
        cells = [row.compiler, f"{row.compiled:.3f}", f"{row.compiled_by_turns:.3f}"]
        cells += [f"{compiled:.2f}", f"{row.eager:.3f}", f"{row.eager_by_turns:.3f}"]
        lines.append(f"| {' | '.join(cells)} | {eager:.2f} |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the exit status is 1 if a ratio of ours is over the bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, help="folder for the page; default: none")
    args = parser.parse_args(arguments)
    found = rows()
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
    return 0 if max(found[0].ratios) <= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
