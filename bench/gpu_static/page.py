"""The results as a page of Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import geometric_mean
from typing import Any

from bench.cells import NONE, milliseconds, number, percent, table
from bench.gpu_static.against import Compared, misordered

Json = dict[str, Any]


def markdown(results: Json) -> str:
    """The page.

    Args:
        results: ``date``, ``versions``, ``chips`` (by architecture), ``rows`` (see
            :data:`bench.gpu_static.measure.KEYS`; ``bar`` besides), ``misses`` (sentences).
    """
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    lines = [
        f"# {results['date']}, kernels for GPUs, from their machine code",
        "",
        "Written by `python -m bench.gpu_static`; no GPU is needed, and none was used. "
        f"{versions}. Times are a model's: waves of blocks, each a prologue, iterations of the "
        "main loop and an epilogue; cycles are those of an iteration of all blocks that a "
        "multiprocessor holds. Reach is the time of the busiest thing that cannot be saved, the "
        "matrix units' or the memory's, over the predicted time.",
    ]
    for arch, chip in results["chips"].items():
        rows = [row for row in results["rows"] if row["arch"] == arch]
        lines += ["", f"## {arch}, {chip}"]
        if rows:
            lines += ["", *_times(rows), "", *_loops(rows)]
        if sustained := [row for row in rows if row.get("sustained")]:
            lines += ["", *_sustained(sustained)]
        if vector := [row for row in results["vector"] if row["arch"] == arch]:
            lines += ["", *_widths(vector)]
        for group, name in (("resnet-50", "channels last"), ("resnet-50-nchw", "channels apart")):
            convolutions = [row["reach"] for row in rows if row["group"] == group]
            if convolutions:
                mean = geometric_mean(convolutions)
                text = (
                    f"Convolutions of ResNet-50, {name}, geometric mean of the reach: {mean:.2f}."
                )
                lines += ["", text]
    lines += ["", "## What does not hold", ""]
    lines += [f"- {miss}" for miss in results["misses"]] or ["Everything does."]
    if results["failed"]:
        lines += ["", "## Not built", "", *(f"- {text}" for text in results["failed"])]
    return "\n".join(lines) + "\n"


def _times(rows: Sequence[Json]) -> list[str]:
    cells = []
    for row in rows:
        mapping = row["mapping_seconds"]
        cells.append(
            [
                row["case"],
                milliseconds(row["seconds"]),
                milliseconds(mapping),
                number(None if mapping is None else mapping / row["seconds"]),
                f"{row['teraflops']:.0f}",
                f"{row['reach'] * 100:.0f}",
                NONE if row["bar"] is None else f"{row['bar'] * 100:.0f}",
                str(row["kernels"]),
                f"{row['resident']} of {row['assumed']}",
                str(row["registers"]),
                str(row["spill_bytes"] + row["stack_bytes"]),
                NONE if row["conflicts"] is None else str(row["conflicts"]),
            ]
        )
    heads = [
        "case", "ms", "mapping, ms", "mapping / this", "TFLOP/s", "reach, %", "at least", "kernels",
        "blocks held, assumed", "registers", "spills and stack", "conflicts",
    ]  # fmt: skip
    return table(heads, cells)


def _sustained(rows: Sequence[Json]) -> list[str]:
    """Times at the clock that the limit of power leaves."""
    cells = [
        [
            row["case"],
            f"{row['sustained']['hertz'] / 1e9:.2f}",
            milliseconds(row["sustained"]["seconds"]),
            f"{row['teraflops'] * row['seconds'] / row['sustained']['seconds']:.0f}",
            f"{row['sustained']['reach'] * 100:.0f}",
            f"{row['sustained']['of_nominal'] * 100:.0f}",
        ]
        for row in rows
    ]
    heads = [
        "at the limit of power", "GHz", "ms", "TFLOP/s", "reach, %", "of the nominal peak's, %",
    ]  # fmt: skip
    text = (
        "Above, the reach is that of the peak at the published clock of the matrix units. The "
        "clock below is what a limit of 700 W leaves, by what a kernel keeps busy: an H200 held "
        "1.635 GHz while products ran one after the other (2026-11-28); cuBLAS had 634 to 695 "
        "TFLOP/s of 8192x8192x8192 then: 64 to 70 % of the nominal peak of 989. The model takes "
        "the kernels that were measured there to be 0.88 to 1.12 times as fast as they were, "
        "attention 0.98 to 1.12 times."
    )
    return [text, "", *table(heads, cells)]


def _loops(rows: Sequence[Json]) -> list[str]:
    cells = []
    for row in rows:
        flight = row["bytes_in_flight"]
        cells.append(
            [
                row["case"],
                row["limit"],
                *(
                    f"{row['cycles'][name]:.0f}"
                    for name in ("matrix", "issue", "shared", "cache", "schedule")
                ),
                str(row["trips"]),
                f"{row['prologue']:.0f}",
                f"{row['epilogue']:.0f}",
                NONE if row["matrix_slots"] is None else f"{row['matrix_slots'] * 100:.0f}",
                number(row["vector_per_matrix"]),
                NONE if flight is None else f"{flight / 1e6:.2f}",
            ]
        )
    heads = [
        "main loop", "limit", "matrix", "issue", "shared", "cache", "schedule", "iterations",
        "prologue", "epilogue", "matrix slots, %", "vector / matrix", "MB in flight",
    ]  # fmt: skip
    return table(heads, cells)


def _widths(rows: Sequence[Json]) -> list[str]:
    """Kernels without matrix units: accesses by bits of a thread."""

    def told(found: Mapping[int, int] | None) -> str:
        if not found:
            return NONE
        return ", ".join(f"{count} of {bits}" for bits, count in found.items())

    cells = [
        [
            row["case"],
            percent(row["float_slots"]),
            *(told(row[key]) for key in ("operands", "loads", "stores", "shared_loads")),
            told(row["shared_stores"]),
            str(row["registers"]),
            NONE if row["conflicts"] is None else str(row["conflicts"]),
            row["narrow"] or NONE,
        ]
        for row in rows
    ]
    heads = [
        "without units; accesses in bits", "multiply-add slots, %", "operands in the loop", "loads",
        "stores", "shared loads", "shared stores", "registers", "conflicts", "narrow since",
    ]  # fmt: skip
    return table(heads, cells)


def published(groups: Mapping[str, Sequence[Compared]]) -> str:
    """The model against what others have measured."""
    lines = ["# What others have measured, and the model", ""]
    for name, rows in groups.items():
        cells = [
            [
                f"{row.chip}: {row.name}",
                f"{row.measured:.1f}",
                f"{row.predicted:.1f}",
                row.unit,
                f"{row.ratio:.2f}",
                "yes" if row.holds else "**no**",
                row.source,
            ]
            for row in rows
        ]
        heads = [name, "measured", "predicted", "unit", "ratio", "holds", "source"]
        lines += [*table(heads, cells), ""]
        if name == "kernels":
            pairs = [f"- {slow.name}, {fast.name}" for slow, fast in misordered(rows)]
            lines += ["In the wrong order:", "", *(pairs or ["- none"]), ""]
    return "\n".join(lines)
