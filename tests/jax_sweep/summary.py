"""The results of the sweep, as a table and as Markdown."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import jax
from entries import NOT_SWEPT
from rich.console import Console
from rich.table import Table
from sweep import Result

MEANING = {
    "compiled": "all samples compiled whole, results right",
    "fallback": "JAX runs a part or all of at least one sample, results right",
    "skipped": "XLA compiles no sample on this machine",
    "wrong": "results differ",
    "timeout": "took too long",
    "crashed": "the process died",
}


def print_table(results: list[Result], seconds: float) -> None:
    """Print the counts, and what is not as it should be."""
    console = Console()
    table = Table(title=f"{len(results)} primitives in {seconds:.0f} s")
    for title in ("outcome", "primitives", "samples"):
        table.add_column(title, justify="left" if title == "outcome" else "right")
    table.add_column("meaning")
    counts = Counter(result.kind for result in results)
    for kind, meaning in MEANING.items():
        samples = sum(result.count(kind) for result in results)
        table.add_row(kind, str(counts[kind]), str(samples), meaning)
    console.print(table)
    for kind in ("wrong", "crashed", "timeout"):
        for result in results:
            if result.count(kind):
                console.print(f"{kind}: {result.name}: {result.first(kind)}", markup=False)


def write_markdown(path: Path, results: list[Result]) -> None:
    """Write the counts and the lists of what is not compiled, with reasons."""
    counts = Counter(result.kind for result in results)
    total = sum(len(result.outcomes) for result in results)
    compiled = sum(result.count("compiled") for result in results)
    skipped = sum(result.count("skipped") for result in results)
    lines = [
        "# JAX's primitives",
        "",
        f"Written by `make jax-sweep`, with jax {jax.__version__}: {len(results)} primitives of "
        f"`jax.lax`, {total} samples; {compiled} of the {total - skipped} that XLA compiles "
        f"({compiled / max(total - skipped, 1):.1%}) are compiled.",
        "",
        "| outcome | primitives | samples | meaning |",
        "|---|---:|---:|---|",
    ]
    for kind, meaning in MEANING.items():
        samples = sum(result.count(kind) for result in results)
        lines.append(f"| {kind} | {counts[kind]} | {samples} | {meaning} |")
    for kind in ("wrong", "crashed", "timeout", "fallback", "skipped"):
        chosen = [result for result in results if result.count(kind)]
        if not chosen:
            continue
        lines += ["", f"## {kind}", "", "| primitive | samples | the first |", "|---|---:|---|"]
        for result in chosen:
            reason = result.first(kind).replace("|", "\\|")
            bad = f"{result.count(kind)} of {len(result.outcomes)}"
            lines.append(f"| {result.name} | {bad} | {reason} |")
    lines += ["", "## not swept", "", "| primitives | why |", "|---|---|"]
    lines += [f"| {', '.join(names.split())} | {why} |" for why, names in NOT_SWEPT.items()]
    path.write_text("\n".join(lines) + "\n")
