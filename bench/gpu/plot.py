"""The results as a picture: percent of the copy bandwidth by case and peer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench import page
from bench.engines import OURS

Json = dict[str, Any]

_COLOURS = ("#1b6ca8", "#8d99ae", "#d1495b", "#edae49")


def draw(results: Json, path: Path) -> None:
    """Write the picture, a PNG. Cases that a peer cannot run have no bar of it."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    cases = results["cases"][::-1]
    names = [OURS, *(name for name in page.names(results) if name != OURS)]
    figure = Figure(figsize=(9, 1.4 + 0.6 * len(cases)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    height = 0.8 / max(1, len(names))
    for k, name in enumerate(names):
        bars = [
            (y, row["share"] * 100)
            for y, case in enumerate(cases)
            for row in case["peers"]
            if row["peer"] == name and row.get("share")
        ]
        places = [y + 0.4 - height * (k + 0.5) for y, _ in bars]
        values = [value for _, value in bars]
        axes.barh(places, values, height=height, color=_COLOURS[k % len(_COLOURS)], label=name)
        for y, value in zip(places, values, strict=True):
            axes.annotate(f" {value:.0f}", (value, y), va="center", fontsize=6)
    axes.set_yticks(range(len(cases)), [case["case"] for case in cases])
    axes.axvline(100, color="black", linewidth=0.8)
    axes.set_xlabel("percent of the measured copy bandwidth, by the bytes that nobody can avoid")
    axes.grid(axis="x", alpha=0.3)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, fontsize=8, frameon=False)
    figure.suptitle(f"{results['date']}, {results['gpu']['name']}, float32", fontsize=11)
    figure.savefig(path, dpi=110)
