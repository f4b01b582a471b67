"""The results as a picture: ratios on the left, distance to the floor on the right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.engines import OURS
from bench.page import CONTRACTIONS

Json = dict[str, Any]

_OURS, _BEST, _INDUCTOR, _BAR = "#1b6ca8", "#d1495b", "#8d99ae", "#2b2d42"
_FLOOR: Any = {"color": _BAR, "linewidth": 1.2, "linestyle": ":", "zorder": 3}


def draw(results: Json, path: Path) -> None:
    """Write the picture, a PNG.

    Left: time of the best peer and of Inductor over ours, with the bar of each case. Right: our
    time and the best peer's as multiples of the floor, and what our model predicts. Cases that we
    or all others cannot run have no marks.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    cases = results["cases"][::-1]
    figure = Figure(figsize=(13, 1.2 + 0.42 * len(cases)), layout="constrained")
    FigureCanvasAgg(figure)
    ratios, floors = figure.subplots(1, 2, sharey=True)
    ratios.set_yticks(range(len(cases)), [case["case"] for case in cases])
    ratios.set_ylim(-0.6, max(1, len(cases)) - 0.4)
    _draw_ratios(ratios, cases)
    _draw_floors(floors, cases)
    machine = results["machine"]
    types = "" if results["group"] == CONTRACTIONS else ", float32"
    figure.suptitle(
        f"{results['date']}, {machine['cpu']}, {machine['threads']} threads{types}", fontsize=11
    )
    figure.savefig(path, dpi=110)


def _log_axis(axes: Any) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.axvline(1, color="black", linewidth=0.8)


def _legend(axes: Any) -> None:
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize=8, frameon=False)


def _draw_ratios(axes: Any, cases: list[Json]) -> None:
    series: tuple[tuple[str, str, float, str], ...] = (
        ("to_inductor", "Inductor", -0.19, _INDUCTOR),
        ("to_best", "best peer", 0.19, _BEST),
    )
    for key, label, shift, colour in series:
        marks = [(y, v) for y, c in enumerate(cases) if (v := c["verdict"][key]) is not None]
        if marks:
            places, values = zip(*marks, strict=True)
            axes.barh(
                [y + shift for y in places],
                [v - 1 for v in values],
                left=1,
                height=0.36,
                color=colour,
                label=f"{label} / ours",
            )
            for y, value in marks:
                axes.annotate(
                    f" {value:.2f}" if value >= 1 else f"{value:.2f} ",
                    (value, y + shift),
                    va="center",
                    ha="left" if value >= 1 else "right",
                    fontsize=7,
                )
    for y, case in enumerate(cases):
        axes.plot([case["bar"]] * 2, [y, y + 0.4], color=_BAR, linewidth=2.5, zorder=3)
        if case["bar_floor"]:
            axes.plot([case["bar_floor"]] * 2, [y, y + 0.4], **_FLOOR)
    axes.plot([], [], color=_BAR, linewidth=2.5, label="asked of the best")
    if any(case["bar_floor"] for case in cases):
        axes.plot([], [], label="at the very least", **_FLOOR)
    _log_axis(axes)
    axes.margins(x=0.15)
    axes.set_xlabel("times as fast (log scale)")
    axes.grid(axis="x", alpha=0.3)
    _legend(axes)


def _draw_floors(axes: Any, cases: list[Json]) -> None:
    drawn = False
    for y, case in enumerate(cases):
        floor, best = case["verdict"]["floor"], case["verdict"]["best"]
        rows = {row["peer"]: row for row in case["peers"] if "minimum" in row}
        if not floor:
            continue
        points = [
            (rows[name][key] / floor, marker, colour)
            for name, key, marker, colour in (
                (best, "minimum", "o", _BEST),
                (case["verdict"]["way"] or OURS, "minimum", "D", _OURS),
                (case["verdict"]["way"] or OURS, "predicted", "|", _BAR),
            )
            if name in rows and rows[name].get(key)
        ]
        if points:
            axes.plot([1, max(p[0] for p in points)], [y, y], color="#cccccc", zorder=1)
        for value, marker, colour in points:
            axes.plot(value, y, marker, color=colour, markersize=8 if marker != "|" else 13)
            drawn = True
    for label, marker, colour in (
        ("best peer", "o", _BEST),
        ("ours", "D", _OURS),
        ("ours, predicted", "|", _BAR),
    ):
        axes.plot([], [], marker, color=colour, label=label)
    if drawn:
        _log_axis(axes)
    what = "moving inputs and output once"
    if any(case["flops"] for case in cases):
        what += ", or of the multiply-adds"
    axes.set_xlabel(f"time over that of {what} (log scale)")
    axes.grid(axis="x", alpha=0.3)
    _legend(axes)
