"""The models as a page of Markdown."""

from __future__ import annotations

from typing import Any

from bench.cells import NONE, table
from bench.gpu_models.published import times_of
from bench.gpu_models.zoo import MODELS

Json = dict[str, Any]

#: Kernels of a model that the page names.
_NAMED = 3


def reach(row: Json) -> float:
    """The sum of the floors of its kernels over its time, without what lies between them."""
    return float(row["floor"] / (row["seconds"] - row["between"]))


def counted(row: Json) -> int:
    """The launches that a bar is for: those of a layer, or of a model without layers."""
    return int(row["layer"] if MODELS[row["model"]].layers else row["launches"])


def markdown(results: Json) -> str:
    """A table for each chip and batch, and the kernels that take longest."""
    rows = results["rows"]
    lines = [
        f"# {results['date']}, models in float16 on GPUs, predicted",
        "",
        "Written by `python -m bench.gpu_models`; nothing was launched. Kernels whose products a "
        "matrix unit computes are read from their machine code, the others are predicted by the "
        "mapping. The reach is the sum over kernels of the least time (products on the unit, or "
        "arrays once from memory) over the sum of their times; bytes are those that kernels move "
        "from the cache that all blocks share, or from memory, over those of their arrays; "
        "of these memory moves what tiles of products do not find in the last cache. What blocks "
        "of a launch wait for others of it lies between, too.",
    ]
    for arch, batch in dict.fromkeys((row["arch"], row["batch"]) for row in rows):
        chosen = [row for row in rows if (row["arch"], row["batch"]) == (arch, batch)]
        lines += ["", f"## {arch}, batch {batch}", "", *_table(chosen)]
        lines += ["", "The longest kernels:", "", *_longest(chosen)]
        if others := _published(chosen):
            lines += ["", "Measured by others, beside the prediction:", "", *others]
    return "\n".join(lines) + "\n"


def _table(rows: list[Json]) -> list[str]:
    heads = ["model", "launches", "of a layer", "bar", "µs", "between", "floor", "reach", "bytes",
             "of memory", "workspace, MB", "stack", "compile, processor s"]  # fmt: skip
    return table(heads, [_cells(row) for row in rows])


def _cells(row: Json) -> list[str]:
    if "problem" in row:
        return [row["model"], *[NONE] * 11, row["problem"].replace("|", "/")[:100]]
    bar = MODELS[row["model"]].bar
    return [
        row["model"],
        str(row["launches"]),
        str(row["layer"] or NONE),
        NONE if not bar else f"{bar}{'' if counted(row) <= bar else ' missed'}",
        f"{row['seconds'] * 1e6:.0f}",
        f"{row['between'] * 1e6:.0f}",
        f"{row['floor'] * 1e6:.0f}",
        f"{reach(row):.2f}",
        f"{row['moved'] / max(row['compulsory'], 1):.2f}",
        f"{row['memory'] / max(row['compulsory'], 1):.2f}" if "memory" in row else NONE,
        f"{row['workspace'] / 1e6:.1f}",
        str(sum(kernel["private"] for kernel in row["kernels"])),
        f"{row['processor']:.0f}",
    ]


def _longest(rows: list[Json]) -> list[str]:
    heads = ["model", "kernel", "calls", "µs each", "floor", "bound", "extents", "tile", "blocks"]
    return table(
        heads,
        [
            [
                row["model"],
                kernel["name"][:40],
                str(kernel["calls"]),
                NONE if kernel["seconds"] is None else f"{kernel['seconds'] * 1e6:.1f}",
                f"{kernel['floor'] * 1e6:.1f}",
                str(kernel["bound"]),
                ", ".join("x".join(map(str, each)) for each in kernel["extents"][:1]),
                "x".join(map(str, kernel["tile"])),
                str(kernel["blocks"]),
            ]
            for row in rows
            for kernel in row.get("kernels", [])[:_NAMED]
        ],
    )


def _published(rows: list[Json]) -> list[str]:
    """What others have measured of the models; nothing of none."""
    cells = [
        [
            row["model"],
            each.system,
            f"{each.milliseconds * 1e3:.0f}",
            f"{row['seconds'] * 1e6:.0f}",
            f"{row['seconds'] * 1e3 / each.milliseconds:.2f}",
            each.conditions,
            f"[{each.source.title}]({each.source.url})",
        ]
        for row in rows
        if "problem" not in row
        for each in times_of(row["model"], row["batch"], row["arch"])
    ]
    heads = ["model", "system", "µs measured", "µs predicted", "of it", "conditions", "source"]
    return table(heads, cells) if cells else []


def line(row: Json) -> str:
    """What is said of a row as soon as it is there."""
    place = f"{row['model']}, batch {row['batch']}, {row['arch']}"
    if "problem" in row:
        return f"{place}: {row['problem'][:200]}"
    return (
        f"{place}: {row['launches']} launches, {row['layer']} of a layer, "
        f"{row['seconds'] * 1e6:.0f} us, reach {reach(row):.2f}, {row['processor']:.0f} s"
    )
