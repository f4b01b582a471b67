"""What a run of random contractions found: the counts, what is slow, a picture."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from contraction_fuzz import Sample
from forked_sweep import Outcome

#: Shorter calls are not called slow: most of their time goes into calling at all.
SHORT_S = 1e-4
#: What is slow: calls that take longer than the better peer by this factor.
SLOW = 2.0
PEERS = ("eager", "inductor")
BAD = ("wrong", "crashed", "timeout")


@dataclass
class Row:
    """A sample and what happened to it.

    Attributes:
        number: of the sample.
        name: its type and kind.
        kind: of the contraction.
        flops: of the contraction.
        text: the program.
        outcome: of the sweep.
        measured: seconds by name: ``ours``, ``eager``, ``inductor``, ``first_call``.
        reason: of the outcome.
    """

    number: int
    name: str
    kind: str
    flops: int
    text: list[str]
    outcome: str
    reason: str
    measured: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, number: int, sample: Sample, outcome: Outcome) -> Row:
        """The row of a sample."""
        contraction = sample.contraction
        return cls(
            number,
            sample.name,
            contraction.kind,
            contraction.flops,
            sample.text,
            outcome.kind,
            outcome.reason,
            outcome.measured,
        )

    @property
    def ratio(self) -> float | None:
        """How many times as long as ours the better peer takes; None where we were not timed."""
        peers = [self.measured[peer] for peer in PEERS if peer in self.measured]
        if self.outcome != "compiled" or "ours" not in self.measured or not peers:
            return None
        return min(peers) / self.measured["ours"]

    @property
    def long(self) -> bool:
        """Whether a call of ours takes so long that its time says something."""
        return self.measured.get("ours", 0.0) >= SHORT_S


def bad_lines(row: Row, seed: int) -> list[str]:
    """What is wrong with a sample, the command that repeats it, and the program."""
    return [
        f"{row.outcome}: {row.name}: {row.reason}",
        f"  python tests/slow/random_contractions.py --seed {seed} --only {row.number}",
        *(f"  {line}" for line in row.text),
    ]


def counts(rows: Sequence[Row]) -> list[str]:
    """Samples by kind of contraction and outcome, and the reasons of those not compiled."""
    outcomes = ("compiled", "fallback", "skipped", *BAD)
    lines = [f"{'':18}" + "".join(f"{outcome:>10}" for outcome in outcomes)]
    for kind in (*sorted({row.kind for row in rows}), ""):
        found = Counter(row.outcome for row in rows if kind in ("", row.kind))
        lines.append(f"{kind or 'all':18}" + "".join(f"{found[o]:>10}" for o in outcomes))
    for outcome in ("fallback", "skipped"):
        reasons: dict[str, list[int]] = {}
        for row in rows:
            if row.outcome == outcome:
                reasons.setdefault(row.reason, []).append(row.number)
        for why, numbers in sorted(reasons.items(), key=lambda item: -len(item[1])):
            some = ", ".join(map(str, numbers[:5])) + (", …" if numbers[5:] else "")
            lines.append(f"{outcome}, {len(numbers)} samples ({some}): {why}")
    return lines


def times(rows: Sequence[Row]) -> list[str]:
    """Quartiles of the ratios by kind, of the calls that are long, and those that are slow."""
    timed = [(row, row.ratio) for row in rows if row.ratio is not None and row.long]
    left_out = sum(row.outcome == "compiled" and row.ratio is None for row in rows)
    busy = [f"not timed, as the machine was busy with others: {left_out}"] if left_out else []
    if not timed:
        return busy
    lines = [
        *busy,
        f"better peer / ours, of {len(timed)} calls of {SHORT_S * 1e3:g} ms and more:",
        f"{'':18}{'calls':>8}{'least':>8}{'25 %':>8}{'median':>8}{'75 %':>8}{'most':>8}",
    ]
    for kind in (*sorted({row.kind for row, _ in timed}), ""):
        ratios = sorted(ratio for row, ratio in timed if kind in ("", row.kind))
        quartiles = statistics.quantiles(ratios, method="inclusive") if ratios[1:] else ratios * 3
        numbers = "".join(f"{r:8.2f}" for r in (ratios[0], *quartiles, ratios[-1]))
        lines.append(f"{kind or 'all':18}{len(ratios):>8}{numbers}")
    slow = sorted((ratio, row.number, row) for row, ratio in timed if ratio * SLOW < 1)
    lines.append(f"slow: {len(slow)} calls of more than {SLOW:g} times the better peer's time")
    for ratio, number, row in slow:
        seconds = ", ".join(
            f"{name} {row.measured[name] * 1e3:.3g} ms"
            for name in ("ours", *PEERS)
            if name in row.measured
        )
        lines.append(
            f"  {ratio:.3f}  {number:>4} {row.name}, {row.flops / 1e6:.3g} MFLOP: {seconds}"
        )
    return lines


def write(rows: Sequence[Row], path: Path) -> None:
    """Draw the ratios by kind of contraction, a PNG, and write all rows beside it, as JSON."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    path.with_suffix(".json").write_text(json.dumps([asdict(row) for row in rows], indent=1))
    kinds = sorted({row.kind for row in rows}, reverse=True)
    figure = Figure(figsize=(9, 1.6 + 0.42 * len(kinds)), layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.subplots()
    for y, kind in enumerate(kinds):
        timed = [row for row in rows if row.kind == kind and row.ratio is not None]
        for long, colour in ((False, "#b8c4cf"), (True, "#1b6ca8")):
            ratios = [row.ratio for row in timed if row.long == long]
            # Side by side in their row, in the order in which they were drawn.
            places = [y - 0.3 + 0.6 * (i + 0.5) / len(ratios) for i in range(len(ratios))]
            axes.plot(ratios, places, ".", color=colour, markersize=5)
        ratios = [row.ratio for row in timed if row.long]
        if ratios:
            axes.plot([statistics.median(ratios)] * 2, [y - 0.38, y + 0.38], color="#d1495b")
    for label, style, colour in (
        (f"calls of {SHORT_S * 1e3:g} ms and more", ".", "#1b6ca8"),
        ("shorter ones", ".", "#b8c4cf"),
        ("median of the former", "-", "#d1495b"),
    ):
        axes.plot([], [], style, color=colour, label=label)
    axes.set_xscale("log")
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks(range(len(kinds)), kinds)
    axes.set_ylim(-0.6, max(1, len(kinds)) - 0.4)
    axes.grid(axis="x", alpha=0.3)
    axes.set_xlabel("time of the better peer over ours (log scale); right of 1 we are faster")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize=8, frameon=False)
    figure.savefig(path, dpi=110)
