"""The results of a sweep, as a table and as Markdown."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import tensorflow as tf
from forked_sweep import Entry
from rich.console import Console
from rich.table import Table

MEANING = {
    "compiled": "compiled whole, results right",
    "fallback": "TensorFlow runs a part or all, results right",
    "wrong": "results differ from TensorFlow's and from its XLA's",
    "timeout": "took too long",
    "crashed": "the process died",
    "skipped": "TensorFlow or its XLA does not run it either",
}

#: Factorizations, and Fourier transforms of any number of dimensions, are left to TensorFlow.
ASIDE = frozenset(
    "Cholesky CholeskyGrad Qr Svd SelfAdjointEigV2 XlaSelfAdjointEig Eig Lu MatrixDeterminant "
    "LogMatrixDeterminant MatrixInverse MatrixSolve MatrixSolveLs MatrixSquareRoot "
    "MatrixTriangularSolve MatrixExponential MatrixLogarithm TridiagonalSolve FFTND IFFTND RFFTND "
    "IRFFTND".split()
)


class Counts:
    """Samples by outcome, and raw operations by what became of them."""

    def __init__(self, entries: list[Entry]) -> None:
        self.samples = Counter(o.kind for entry in entries for _, o in entry.outcomes)
        ran: set[str] = set()
        left: dict[str, str] = {}
        for entry in entries:
            for _, outcome in entry.outcomes:
                if outcome.kind in ("compiled", "fallback"):
                    ran.update(outcome.ops)
                for op in outcome.left:
                    left.setdefault(op, outcome.reason)
        #: Operations of samples that XLA compiles; and those that were ever left to TensorFlow.
        self.ops = sorted(ran)
        self.left = {op: left[op] for op in sorted(left)}

    @property
    def share(self) -> float:
        """Of the operations that XLA compiles, factorizations and transforms aside."""
        ops = set(self.ops) - ASIDE
        return 1 - len(set(self.left) & ops) / max(len(ops), 1)


def print_table(entries: list[Entry], seconds: float) -> Counts:
    """Print the counts, and each sample that is wrong or crashed."""
    counts = Counts(entries)
    console = Console()
    table = Table(title=f"{len(entries)} entries in {seconds:.0f} s")
    table.add_column("outcome")
    table.add_column("samples", justify="right")
    table.add_column("meaning")
    for kind, meaning in MEANING.items():
        table.add_row(kind, str(counts.samples[kind]), meaning)
    console.print(table)
    console.print(f"{len(counts.ops)} raw operations, {100 * counts.share:.1f} % always compiled")
    for entry in entries:
        for label, outcome in entry.outcomes:
            if outcome.kind in ("wrong", "crashed", "timeout"):
                line = f"{outcome.kind}: {entry.name} {label}: {outcome.reason}"
                console.print(line, markup=False)
    return counts


def write_markdown(path: Path, entries: list[Entry], uncovered: list[str]) -> None:
    """Write the counts, the operations, and the lists of what did not compile."""
    counts = Counts(entries)
    compiled = [op for op in counts.ops if op not in counts.left]
    lines = [
        "# Operations of TensorFlow",
        "",
        f"Written by `make tf-sweep`, with tensorflow {tf.__version__}: {len(entries)} functions "
        f"and raw operations, {sum(counts.samples.values())} samples in all. What TensorFlow's "
        "XLA compiles on a CPU counts; results are compared with TensorFlow's and with XLA's.",
        "",
        "| outcome | samples | meaning |",
        "|---|---:|---|",
        *(f"| {kind} | {counts.samples[kind]} | {text} |" for kind, text in MEANING.items()),
        "",
        f"The samples hold {len(counts.ops)} raw operations that XLA compiles. {len(compiled)} "
        f"compiled in all of them, {len(counts.left)} fell back in some; factorizations and "
        f"Fourier transforms aside, {100 * counts.share:.1f} % compiled.",
    ]
    if counts.left:
        lines += ["", "## Left to TensorFlow", "", "| operation | reason |", "|---|---|"]
        for op, reason in counts.left.items():
            lines.append(f"| {op} | {_cell(reason)} |")
    for kind in ("wrong", "crashed", "timeout", "fallback", "skipped"):
        rows = [(e.name, label, o) for e in entries for label, o in e.outcomes if o.kind == kind]
        if not rows:
            continue
        lines += [
            "",
            f"## {kind}",
            "",
            "| entry | samples | reason of the first |",
            "|---|---:|---|",
        ]
        for name in dict.fromkeys(name for name, _, _ in rows):
            own = [(label, o) for entry, label, o in rows if entry == name]
            label, outcome = own[0]
            lines.append(f"| {name} | {len(own)} | {_cell(f'{label}: {outcome.reason}')} |")
    lines += ["", "## Compiled", "", ", ".join(compiled)]
    if uncovered:
        lines += ["", "## Public functions without a sample", "", ", ".join(uncovered)]
    path.write_text("\n".join(lines) + "\n")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")[:200]
