"""The results of a sweep, as a table and as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import torch
from judge import NARROW
from rich.console import Console
from rich.table import Table
from sweep import Result, Task

MEANING = {
    "compiled": "all samples compiled whole, results right",
    "random": "compiled, random numbers drawn by PyTorch's generator, results right",
    "fallback": "PyTorch runs a part or all of at least one sample, results right",
    "skipped": "PyTorch itself runs no sample on this machine",
    "wrong": "results differ",
    "timeout": "took too long",
    "crashed": "the process died",
}

_HOW_JUDGED = [
    "A result is right if its error against the same operation in float64 is at most twice eager's "
    "(`tests/support/judge.py`).",
    "",
]

_WHICH_GRADIENTS = [
    "Compared are the gradients of all operands that have some and, where the entry has them, the "
    "gradients of a function of those.",
    "",
]


def print_table(results: list[Result], seconds: float) -> None:
    """Print the counts, and each entry that is wrong or crashed."""
    console = Console()
    counts = Counter(result.kind for result in results)
    table = Table(title=f"{len(results)} entries in {seconds:.0f} s")
    table.add_column("outcome")
    table.add_column("entries", justify="right")
    table.add_column("meaning")
    for kind, meaning in MEANING.items():
        table.add_row(kind, str(counts[kind]), meaning)
    console.print(table)
    for result in results:
        if result.kind in ("wrong", "crashed", "timeout"):
            console.print(f"{result.kind}: {result.name}: {result.reason}", markup=False)


def write_markdown(path: Path, results: list[Result], task: Task, left: Sequence[str] = ()) -> None:
    """Write the counts, the list of fallbacks with reasons, and what was not run."""
    counts = Counter(result.kind for result in results)
    options, dtype = task.options, str(task.dtype).removeprefix("torch.")
    if options.target == "cpu":
        command, chosen, where = "make opinfo", "the", ""
        if left:
            chosen = f"of {len(results) + len(left)} entries, those not run named at the end, the"
        given = ["--gradients"] * task.gradients
        if task.dtype != torch.float32:
            given.append(f"--dtype {dtype}")
        if given:
            command += f' OPINFO_ARGS="{" ".join(given)} --samples {task.count}"'
    else:
        command, chosen = "make opinfo-gpu", "evenly spaced by name,"
        where = f" for {options.target} ({options.arch})" + " in the simulator" * options.simulate
    lines = [
        "# PyTorch's operator database",
        "",
        f"Written by `{command}`, with torch {torch.__version__.split('+')[0]}{where}: {chosen} "
        f"{len(results)} {dtype} entries{' with gradients' * task.gradients}, up to {task.count} "
        f"{'' if task.gradients else 'forward '}samples each, "
        f"{sum(len(r.outcomes) for r in results)} samples in all.",
        "",
        *(_HOW_JUDGED if task.dtype in NARROW else []),
        *(_WHICH_GRADIENTS if task.gradients else []),
        "| outcome | entries | meaning |",
        "|---|---:|---|",
        *(f"| {kind} | {counts[kind]} | {meaning} |" for kind, meaning in MEANING.items()),
    ]
    for kind in ("wrong", "crashed", "timeout", "fallback", "random", "skipped"):
        chosen = [result for result in results if result.kind == kind]
        if not chosen:
            continue
        lines += ["", f"## {kind}", "", "| entry | samples | reason |", "|---|---:|---|"]
        for result in chosen:
            bad = sum(outcome.kind == kind for outcome in result.outcomes)
            reason = result.reason.replace("|", "\\|")
            lines.append(f"| {result.name} | {bad} of {len(result.outcomes)} | {reason} |")
    if left:
        lines += ["", "## not run", "", f"{len(left)} entries: {', '.join(left)}."]
    path.write_text("\n".join(lines) + "\n")
