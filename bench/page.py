"""The results as a page of Markdown."""

from __future__ import annotations

from typing import Any

from bench.attention import page as attention_page
from bench.cells import NONE, error, milliseconds, number, percent, table
from bench.contractions import page as contraction_page
from bench.engines import OURS
from bench.pipelines import page as pipeline_page
from bench.verdict import NEAR

Json = dict[str, Any]

#: Groups with a table of their own, its title and its module; the others' rows are held against the
#: copy bandwidth.
CONTRACTIONS, PIPELINES, ATTENTION = "contractions", "pipelines", "attention"
PAGES: dict[str, tuple[str, Any]] = {
    CONTRACTIONS: ("Contractions", contraction_page),
    ATTENTION: ("Attention", attention_page),
    PIPELINES: ("Image pipelines and simulations", pipeline_page),
}

#: Processors kept busy by others, above which the page warns.
BUSY = 0.1


def markdown(results: Json, plot: str | None = None) -> str:
    """The page: a table of times, one of verdicts, ceilings, peers, and who could not run.

    Args:
        results: see :mod:`bench.report`.
        plot: file name of the plot, if there is one.
    """
    machine = results["machine"]
    title, own = PAGES.get(results["group"], ("", None))
    types = "float32"
    if results["group"] == CONTRACTIONS:
        types += " unless a row says otherwise"
    heading = ", ".join(filter(None, (title, results["date"], machine["cpu"])))
    lines = [f"# {heading}", ""]
    if results["reused"]:
        lines += [
            f"**Not for publishing:** the peers' numbers are those of `{results['reused']}`.",
            "",
        ]
    if (results["busy"] or 0) > BUSY:
        lines += ["**The machine was busy with other work: do not trust these numbers.**", ""]
    lines += [
        f"{machine['threads']} threads on {machine['processors']} processors, {types}, Python "
        f"{results['python']}, {machine['c++']}. Minimum of all calls after the first, "
        f"{results['rounds']} turns of each peer, each in a process of its own, with idle time "
        f"between; the verdicts compare turns right after each other, {results['rounds']} duels "
        f"with each of the fastest. Other processes kept {number(results['busy'])} processors "
        "busy.",
        "",
        *_summary(results),
    ]
    if own and results["summary"]:
        lines += ["", *own.remarks(results), *_standing(results["summary"])]
    if plot:
        lines += ["", f"![ratios and distance to the floor]({plot})"]
    lines += ["", "## Times, ms", "", *times(results)]
    lines += ["", "## Verdicts", "", *(own.verdicts if own else _verdicts)(results)]
    if results["ceilings"]:
        lines += ["", "## Ceilings", "", *_ceilings(results["ceilings"])]
    lines += ["", "## Peers", "", *_peers(results)]
    missing = problems(results)
    if missing:
        lines += ["", "## Not run", "", *missing]
    return "\n".join(lines) + "\n"


def _summary(results: Json) -> list[str]:
    summary = results["summary"]
    if not summary:
        return []
    return [
        f"{summary['rows_met']} of {summary['rows_judged']} rows meet their bars. Geometric mean "
        f"{number(summary['geomean_inductor'], '×')} against Inductor and "
        f"{number(summary['geomean_best'], '×')} against the best peer of each row. Slowest "
        f"compilation {number(summary['slowest_compile'], ' s')}.",
    ]


def _standing(summary: Json) -> list[str]:
    """Rows below their floors, rows that are predicted well, and the goals of the whole run."""
    lines = [
        "",
        f"{summary['rows_below_floor']} rows are below their floors or failed. The cost model "
        f"predicts {percent(summary['predicted_near'])} % of the rows within {NEAR}×.",
        "",
    ]
    for goal in summary["goals"]:
        value, least, unit = goal["value"], goal["least"], goal["unit"]
        met = "not measured" if value is None else "met" if value >= least else "not met"
        asked = f"at least {number(least, unit)}"
        lines.append(f"- {goal['goal']}: {number(value, unit)}, {asked}: {met}")
    return lines


def times(results: Json) -> list[str]:
    """The fastest calls in milliseconds; the best of a row is bold."""
    peers = [OURS, *(n for n in names(results) if n != OURS)]
    rows = []
    for case in results["cases"]:
        times = {row["peer"]: row["minimum"] for row in case["peers"] if "minimum" in row}
        best = case["verdict"]["best"]
        cells = []
        for name in peers:
            cell = milliseconds(times.get(name))
            cells.append(f"**{cell}**" if name == best else cell)
        rows.append([case["case"], *cells, milliseconds(case["verdict"]["floor"])])
    return table(["case", *peers, "floor"], rows)


def _verdicts(results: Json) -> list[str]:
    heads = [
        "case", "best / ours", "at least", "Inductor / ours", "% of copy", "at least", "met",
        "compile s", "predicted ms", "error", "eager's error",
    ]  # fmt: skip
    rows = []
    for case in results["cases"]:
        verdict = case["verdict"]
        by_name = {row["peer"]: row for row in case["peers"]}
        ours, eager = by_name.get(OURS, {}), by_name.get("eager", {})
        asked = f"{case['copy_share'] * 100:.0f}" if case["copy_share"] else ""
        rows.append(
            [
                case["case"],
                number(verdict["to_best"]),
                number(case["bar"]),
                number(verdict["to_inductor"]),
                percent(verdict["share"]),
                asked,
                {True: "yes", False: "no", None: NONE}[verdict["met"]],
                number(verdict["compile"]),
                milliseconds(ours.get("predicted")),
                error(ours),
                error(eager),
            ]
        )
    return table(heads, rows)


def _ceilings(ceilings: Json) -> list[str]:
    rows = [
        [f"{kind} multiply-adds", f"{rate / 1e9:.0f} Gop/s" if rate else NONE]
        for kind, rate in ceilings["peaks"].items()
    ]
    for level, rates in ceilings["memory"].items():
        for kind, rate in rates.items():
            rows.append([f"{level} {kind}", f"{rate / 1e9:.0f} GB/s"])
    lines = table([f"{ceilings['threads']} threads", "reached"], rows)
    return [
        *lines,
        "",
        "A copy counts what it reads and what it writes. Rows that are asked for a part of its "
        "rate are held against copies right before and after their turns, since the rate changes.",
    ]


def _peers(results: Json) -> list[str]:
    rows = []
    for name, peer in results["peers"].items():
        versions = ", ".join(f"{k} {v}" for k, v in peer.get("versions", {}).items())
        rows.append([name, peer.get("outputs", NONE), versions or peer.get("problem", NONE)])
    return table(["peer", "outputs", "versions"], rows)


def problems(results: Json) -> list[str]:
    """Who could not run what, and why."""
    return [
        f"- {case['case']}: {row['peer']}: {row['problem']}"
        for case in results["cases"]
        for row in case["peers"]
        if "problem" in row
    ]


def names(results: Json) -> list[str]:
    """The peers, in the order of the first case."""
    return list(dict.fromkeys(row["peer"] for case in results["cases"] for row in case["peers"]))
