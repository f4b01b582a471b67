"""The page of the group ``keras``."""

from __future__ import annotations

from typing import Any

from bench.cells import NONE, error, milliseconds, number, table
from bench.keras_models.table import MODES, PEERS, RIVALS, SIZE
from bench.page import BUSY

Json = dict[str, Any]


def markdown(results: Json) -> str:
    """The means, a table for each mode, where a rival is faster, and what did not run."""
    machine, rows = results["machine"], results["rows"]
    lines = [f"# Keras's networks, {results['date']}, {machine['cpu']}", ""]
    if (results["busy"] or 0) > BUSY:
        lines += ["**The machine was busy with other work: do not trust these numbers.**", ""]
    lines += [
        f"{machine['threads']} threads, float32, images of {SIZE} x {SIZE}, random weights; "
        f"milliseconds of the fastest call, {results['rounds']} turns of each in one process. A "
        "ratio is the time of a rival over ours, the median over the rounds: above 1, ours is "
        "faster. A training step computes gradients and updates of SGD with momentum, without "
        "dropout. Errors are against TensorFlow's result in float64: relative to the largest "
        "logit, or to the length of all updates.",
        "",
    ]
    means = [
        [
            f"{entry['mode']}, {entry['rival']}",
            number(entry["geomean"], "×"),
            number(entry["minimum"], "×"),
            entry["where"] or NONE,
        ]
        for entry in results["summary"]
    ]
    lines += table(["", "geometric mean", "minimum", "of"], means)
    for mode, batch in MODES.items():
        found = [row for row in rows if row["mode"] == mode]
        images = "one image" if batch == 1 else f"{batch} images"
        lines += ["", f"## {mode.capitalize()}, {images}", "", *times(found)]
    lines += ["", "## Slower than a rival", ""]
    lines += [f"- {line}" for line in slower(rows)] or ["Nowhere."]
    wrong = [row for row in rows if "problem" in row or not row["correct"]]
    if wrong:
        lines += ["", "## Wrong or not run", ""]
    for row in wrong:
        said = row.get("problem", f"wrong by {error({'max_error': row.get('error')})}")
        lines.append(f"- {row['model']}, {row['mode']}: {row['peer']}: {said}")
    return "\n".join(lines) + "\n"


def times(rows: list[Json]) -> list[str]:
    """One mode's table; the least of a row is bold."""
    lines = []
    for model in dict.fromkeys(row["model"] for row in rows):
        by_peer = {row["peer"]: row for row in rows if row["model"] == model}
        seconds = {peer: by_peer.get(peer, {}).get("minimum") for peer in PEERS}
        least = min(filter(None, seconds.values()), default=None)
        cells = [model]
        for value in seconds.values():
            cell = milliseconds(value)
            cells.append(f"**{cell}**" if value is not None and value == least else cell)
        cells += [number(by_peer.get(rival, {}).get("ratio")) for rival in RIVALS]
        cells += [number(by_peer.get(peer, {}).get("first_call")) for peer in PEERS]
        cells += [error({"max_error": by_peer.get(peer, {}).get("error")}) for peer in PEERS]
        lines.append(cells)
    heads = ["network", *PEERS, *(f"{rival} / ours" for rival in RIVALS)]
    heads += [f"{peer}'s first call, s" for peer in PEERS]
    heads += [f"{peer}'s error" for peer in PEERS]
    return table(heads, lines)


def slower(rows: list[Json]) -> list[str]:
    """Where ours takes longer than a rival, in one line each."""
    return [
        f"{row['model']}, {row['mode']}: {1 / row['ratio']:.2f} × {row['peer']}"
        for row in rows
        if "ratio" in row and row["ratio"] < 1
    ]
