"""The results as a page of Markdown."""

from __future__ import annotations

from typing import Any

from bench import page
from bench.cells import NONE, table
from bench.engines import OURS
from bench.gpu.bundle import SIMULATOR

Json = dict[str, Any]


def markdown(results: Json, plot: str | None = None) -> str:
    """The page: times, parts of the copy bandwidth, the host's part, graphs, checks.

    Args:
        results: see :func:`bench.gpu.measure.run`; ``checks`` are those of :mod:`bench.gpu.check`.
        plot: file name of the plot, if there is one.
    """
    gpu, rate = results["gpu"], results["ceilings"]
    lines = [f"# {results['date']}, {gpu['name']}", ""]
    versions = ", ".join(f"{name} {version}" for name, version in gpu["versions"].items())
    lines += [
        f"Target {gpu['target']} for {', '.join(gpu['archs'])}; {versions}. float32 unless the "
        "case says otherwise. Times are those between events on the GPU, the fastest of "
        f"{results['rounds']} turns of each peer; ratios and parts of the copy bandwidth compare "
        "turns of the same round.",
    ]
    if gpu["name"] == SIMULATOR:
        lines += ["", "**The times are the simulator's own and say nothing of a chip.**"]
    if rate:
        copy = rate["memory"]["main"]["copy"]
        lines += ["", f"Copy bandwidth, read and written, by our own kernel: {_rate(copy)}."]
    if plot:
        lines += ["", f"![percent of the copy bandwidth]({plot})"]
    lines += ["", "## Times, ms", "", *page.times(results)]
    lines += ["", "## Percent of the copy bandwidth", "", *_shares(results)]
    if any(case.get("flops") for case in results["cases"]):
        lines += ["", "## Products, TFLOP/s", "", *_products(results)]
    lines += ["", "## The host's part", "", *_host(results["host"])]
    lines += ["", "## Recorded in a graph", "", *_graphs(results.get("graphs", {}))]
    if "checks" in results:
        lines += ["", "## Checks", "", *checks(results["checks"])]
    problems = page.problems(results)
    if problems:
        lines += ["", "## Not run", "", *problems]
    return "\n".join(lines) + "\n"


def _shares(results: Json) -> list[str]:
    names = page.names(results)
    rows = []
    for case in results["cases"]:
        by_peer = {row["peer"]: row for row in case["peers"]}
        cells = [_percent(by_peer.get(name, {}).get("share")) for name in names]
        ours = by_peer.get(OURS, {})
        error = NONE if ours.get("max_error") is None else f"{ours['max_error']:.1e}"
        model = ours.get("predicted")
        model = NONE if model is None else f"{model / ours['minimum']:.2f}"
        best = case["verdict"]["to_best"]
        ratio = NONE if best is None else f"{best:.2f}"
        rows.append([case["case"], *cells, ratio, model, error])
    heads = ["case", *names, "best / ours", "predicted / ours", "our error"]
    return table(heads, rows)


def _products(results: Json) -> list[str]:
    """A multiply-add is two operations; the peer is the vendor's library where PyTorch calls it."""
    names = page.names(results)
    rows = []
    for case in results["cases"]:
        if case.get("flops"):
            by_peer = {row["peer"]: row for row in case["peers"]}
            times = [by_peer.get(name, {}).get("minimum") for name in names]
            rows.append(
                [
                    case["case"],
                    *(NONE if t is None else f"{case['flops'] / t / 1e12:.0f}" for t in times),
                ]
            )
    return table(["case", *names], rows)


def _host(host: Json) -> list[str]:
    rows = [[name, _micro(seconds)] for name, seconds in host.items()]
    return table(["a call of 16 elements", "µs of the host"], rows)


def _graphs(graphs: Json) -> list[str]:
    rows = [
        [name, row["problem"], "", ""]
        if "problem" in row
        else [name, "right" if row["same"] else "WRONG", _micro(row["call"]), _micro(row["replay"])]
        for name, row in graphs.items()
    ]
    return table(["case", "replay", "call, µs of the host", "replay, µs"], rows)


def checks(found: Json) -> list[str]:
    """The vendor's tools, and sectors against the simulator's."""
    rows = [
        [tool, row["problem"] if "problem" in row else "clean" if row["clean"] else row["said"]]
        for tool, row in found["sanitizer"].items()
    ]
    lines = table(["tool", "says"], rows)
    counted = [
        [row["problem"], "", "", ""]
        if "problem" in row
        else [
            f"`{row['kernel']}`",
            str(row["simulated"]),
            str(row["counted"]),
            "yes" if row["agree"] else "no",
        ]
        for row in found["bytes"]
    ]
    return [*lines, "", *table(["sectors of", "simulated", "counted", "agree"], counted)]


def _percent(share: float | None) -> str:
    return NONE if share is None else f"{share * 100:.0f}"


def _micro(seconds: float | None) -> str:
    return NONE if seconds is None else f"{seconds * 1e6:.1f}"


def _rate(bytes_per_second: float) -> str:
    return f"{bytes_per_second / 1e9:.4g} GB/s"
