"""All ratios of the group ``cliffs`` in one picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.cliffs.table import BAR, FRAMEWORKS

Json = dict[str, Any]

_COLOURS = dict(zip(FRAMEWORKS, ("#d1495b", "#1b6ca8", "#e2a72e"), strict=True))
#: So many of the smallest ratios have their names beside them.
_NAMED = 25


def draw(results: Json, path: Path) -> None:
    """Write the picture, a PNG: ratios in their order, one dot a row; the smallest with names."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter

    rows = sorted((r for r in results["rows"] if r["ratio"]), key=lambda row: row["ratio"])
    figure = Figure(figsize=(13, 8), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for framework, colour in _COLOURS.items():
        places = [i for i, row in enumerate(rows) if row["framework"] == framework]
        axes.plot(places, [rows[i]["ratio"] for i in places], ".", color=colour, label=framework)
    for place, row in enumerate(rows[:_NAMED]):
        axes.annotate(
            f"{row['case']}, {row['size']}",
            (place, row["ratio"]),
            xytext=(0.06, 0.02 + 0.028 * place),
            textcoords="axes fraction",
            fontsize=7,
            color=_COLOURS[row["framework"]],
            arrowprops={"arrowstyle": "-", "linewidth": 0.3, "color": "#8d99ae"},
        )
    axes.axhline(1, color="black", linewidth=0.8)
    axes.axhline(BAR, color="#2b2d42", linewidth=0.8, linestyle=":")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_ylabel("time of the best other over ours (log scale)")
    axes.set_xlabel("operations in the order of this ratio")
    axes.grid(alpha=0.3)
    axes.legend(loc="upper left", frameon=False)
    machine = results["machine"]
    figure.suptitle(
        f"{results['date']}, {machine['cpu']}, {machine['threads']} threads", fontsize=11
    )
    figure.savefig(path, dpi=110)
