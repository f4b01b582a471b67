"""The explanation as a tree for the terminal."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from rich.text import Text
from rich.tree import Tree

from polyblocks.explanation import units
from polyblocks.explanation.decisions import grouped
from polyblocks.explanation.timeline import repeated

#: Kernels and decisions that are shown unless everything is wanted.
KERNELS = 12
DECISIONS = 6
PASSES = 5
#: Differences between measured and predicted times of one call that are no cause for concern.
NOISE_SECONDS = 10e-6


def tree(document: dict[str, Any], everything: bool = False) -> Tree:
    """A tree of programs, kernels and decisions.

    Args:
        document: see :func:`polyblocks.explanation.document.document`.
        everything: all kernels, decisions and passes, not only the most important ones.
    """
    root = Tree(Text(document["title"], style="bold"), guide_style="dim")
    for part in document["parts"]:
        _part(root.add(_headline(part)), part, everything)
    if not document["parts"]:
        root.add(Text("nothing was compiled", style="yellow"))
    if call := document["call"]:
        root.add(Text(call["text"], style="yellow" if call["host_is_larger"] else ""))
    fallbacks = document["fallbacks"]
    if fallbacks:
        label = f"{units.several(len(fallbacks), 'fallback')} to the framework:"
        node = root.add(Text(label, style="yellow"))
        for f in fallbacks:
            where = f" at {f['location']}" if f["location"] else ""
            times = f" ({f['count']} times)" if f["count"] > 1 else ""
            node.add(Text(f"{f['op']}{where}: {f['reason']}{times}"))
    else:
        root.add(Text("no fallbacks", style="green"))
    for failure in document["failures"]:
        root.add(Text(f"failed: {failure}", style="red"))
    return root


def _headline(part: dict[str, Any]) -> Text:
    origin = {True: ", from the cache", False: ", compiled", None: ""}[part["cached"]]
    kernels = units.several(len(part["kernels"]), "kernel")
    return Text.assemble(
        (part["name"], "bold cyan"),
        f": {kernels} for {part['target']} ({part['arch']}){origin}, "
        f"{part['compile_seconds']:.2f} s to compile",
    )


def _part(node: Tree, part: dict[str, Any], everything: bool) -> None:
    for line in summary(part):
        node.add(Text(line))
    kernels = part["kernels"]
    shown = kernels if everything else kernels[:KERNELS]
    branch = node.add(Text("kernels, the slowest first", style="bold")) if kernels else node
    for kernel in shown:
        _kernel(branch, kernel, part, everything)
    if len(kernels) > len(shown):
        rest = sum(k["share"] for k in kernels[len(shown) :])
        hidden = units.several(len(kernels) - len(shown), "more kernel")
        branch.add(Text(f"{hidden}, {units.percent(rest)} of the time (--all)", style="dim"))
    if part["timeline"]:
        _timeline(node, part, everything)
    unattributed = [d for d in part["decisions"] if d["accepted"] is not None and not d["kernels"]]
    whole = [d for d in part["decisions"] if d["nest"] == "main"]
    _decisions(node, [*whole, *unattributed], everything)
    _passes(node, part["passes"], everything)


def summary(part: dict[str, Any]) -> list[str]:
    """Time and memory of a program, in sentences."""
    totals = part["totals"]
    lines = []
    predicted, measured = totals["predicted_seconds"], totals["measured_seconds"]
    facts = []
    if measured is not None:
        facts.append(f"measured {units.seconds(measured)} ({basis(totals['runs'])})")
    if predicted is not None:
        facts.append(f"predicted{predicted_for(part)} {units.seconds(predicted)}")
    if facts:
        lines.append("time: " + ", ".join(facts))
    if measured is None:
        lines.append(unmeasured(part))
    if totals["bytes"]:
        moved = ", ".join(f"{name} {units.nbytes(n)}" for name, n in totals["bytes"].items())
        lines.append(f"bytes moved per memory level: {moved}")
        floor, arguments, intermediate = (
            units.nbytes(totals[name])
            for name in ("floor_bytes", "argument_bytes", "workspace_bytes")
        )
        lines.append(
            f"floor: {floor}, the kernels' compulsory traffic: inputs and outputs, once each, in "
            "main memory or a cache"
        )
        lines.append(f"arguments and results: {arguments}; intermediate buffers: {intermediate}")
    return lines


def _timeline(node: Tree, part: dict[str, Any], everything: bool) -> None:
    """Launches in order; those of layers that are alike stand there once."""
    rows, bounds = part["timeline"], {k["name"]: bound_of(k) for k in part["kernels"]}
    groups = repeated(rows)
    branch = node.add(
        Text.assemble(("time line: ", "bold"), units.several(len(rows), "kernel call"))
    )
    shown = groups if everything else groups[:KERNELS]
    for group in shown:
        place = branch
        if group.times > 1:
            place = branch.add(Text(f"{group.times} times"))
        for row in group.rows:
            bound = bounds[row["kernel"]]
            place.add(
                Text.assemble(
                    (f"{units.seconds(row['start_seconds'])}  ", "dim"),
                    row["kernel"],
                    f", {units.seconds(row['seconds'])}{f', bound by {bound}' if bound else ''}",
                )
            )
    if len(groups) > len(shown):
        rest = sum(group.times * len(group.rows) for group in groups[len(shown) :])
        hidden = units.several(rest, "more call")
        branch.add(Text(f"{hidden} (--all)", style="dim"))


def bound_of(kernel: dict[str, Any]) -> str:
    """The resource that bounds a kernel; empty if that is unknown."""
    return str((kernel["estimate"] or {}).get("bound", ""))


def predicted_for(part: dict[str, Any]) -> str:
    """How much of a chip the prediction is for: `` for 2 threads``; empty if that is not known."""
    chip = part["chip"] or {}
    noun = {"team": "thread", "grid": "multiprocessor"}.get(chip.get("shared", ""))
    return f" for {units.several(chip['threads'], noun)}" if noun and "threads" in chip else ""


def basis(runs: int) -> str:
    """The basis of a measured time, by the number of runs."""
    if runs == 1:
        return "its only run, without a warm-up: let it run several times"
    return f"the fastest of {units.several(runs, 'run')}"


def unmeasured(part: dict[str, Any]) -> str:
    """Why there are no times."""
    if part["profiled"]:
        return "not measured: it has not run"
    return (
        "not measured: it was compiled without the option 'profile', or target "
        f"'{part['target']}' cannot time its kernels"
    )


def _kernel(node: Tree, kernel: dict[str, Any], part: dict[str, Any], everything: bool) -> None:
    head = Text.assemble((kernel["name"], "bold"), " ", (_facts(kernel), ""))
    branch = node.add(head)
    estimate = kernel["estimate"]
    sources = places(kernel)
    for source in sources if everything else sources[:DECISIONS]:
        line = f"  {source['line']}" if source["line"] else ""
        branch.add(
            Text.assemble((f"{source['op']} {units.place(source['location'])}", "dim"), line)
        )
    if len(sources) > DECISIONS and not everything:
        hidden = units.several(len(sources) - DECISIONS, "more line")
        branch.add(Text(f"and {hidden} (--all)", style="dim"))
    if estimate is not None:
        for line in costs(kernel):
            branch.add(Text(line))
    mine = [d for d in part["decisions"] if kernel["name"] in d["kernels"]]
    _decisions(branch, [d for d in mine if d["accepted"] is not None], everything)


def _facts(kernel: dict[str, Any]) -> str:
    facts = [kernel["kind"]] if kernel["kind"] else []
    if kernel["unit"]:
        facts.append(f"matrix unit {kernel['unit']}")
    if kernel["parallel"] is not None:
        parallel = kernel["parallel"]
        facts.append(f"parallel over {parallel}" if parallel > 1 else "serial")
    if kernel["calls"] > 1:
        facts.append(f"called {kernel['calls']} times")
    if kernel["measured_seconds"] is not None:
        facts.append(f"measured {units.seconds(kernel['measured_seconds'])}")
    if kernel["predicted_seconds"] is not None:
        facts.append(f"predicted {units.seconds(kernel['predicted_seconds'])}")
    if kernel["share"]:
        facts.append(f"{units.percent(kernel['share'])} of the time")
    return ", ".join(facts)


def places(kernel: dict[str, Any]) -> list[dict[str, Any]]:
    """The sources of a kernel, those of one line together: their ops one after the other."""
    lines: dict[str, dict[str, Any]] = {}
    for source in kernel["sources"]:
        # Sources without a location have nothing in common.
        key = source["location"] or f" {source['op']}"
        found = lines.setdefault(key, source)
        ops = [*found["op"].split(", "), source["op"]]
        lines[key] = found | {"op": ", ".join(dict.fromkeys(ops))}
    return list(lines.values())


def costs(kernel: dict[str, Any]) -> list[str]:
    """Bytes and operations of a kernel, in sentences."""
    e = kernel["estimate"]
    moved = ", ".join(f"{name} {units.nbytes(n)}" for name, n in e["bytes"].items())
    ratio = f" ({units.three(e['moved_bytes'] / e['floor_bytes'])} x)" if e["floor_bytes"] else ""
    bound = f"; bound by {e['bound']}" if "bound" in e else ""
    lines = [f"moves {moved}; floor {units.nbytes(e['floor_bytes'])}{ratio}{bound}"]
    if e["flops"]:
        line = f"{units.count(e['flops'])} floating-point operations"
        if kernel["flops_per_second"] is not None:
            line += f", {units.rate(kernel['flops_per_second'], 'FLOP')}"
        if kernel["peak_share"] is not None:
            line += f", {units.percent(kernel['peak_share'])} of the peak"
        lines.append(line)
    if (off := misprediction(kernel)) is not None:
        lines.append(off)
    return lines


def misprediction(kernel: dict[str, Any]) -> str | None:
    """A remark on a prediction that is off by more than a factor of two."""
    measured, predicted = kernel["measured_seconds"], kernel["predicted_seconds"]
    if not measured or not predicted or 0.5 <= measured / predicted <= 2:
        return None
    if abs(measured - predicted) < NOISE_SECONDS * kernel["calls"]:
        return None
    ratio = max(measured / predicted, predicted / measured)
    word = "slower" if measured > predicted else "faster"
    blame = "the cost model misses something, or the machine was busy"
    return f"{units.three(ratio)} times {word} than predicted: {blame}"


def _decisions(node: Tree, decisions: list[dict[str, Any]], everything: bool) -> None:
    groups = grouped(decisions)
    shown = groups if everything else groups[:DECISIONS]
    for d, count in shown:
        mark, style = {True: ("+", "green"), False: ("-", "yellow"), None: ("·", "dim")}[
            d["accepted"]
        ]
        origin = f"  [{d['pass']}{f', {count} like this' if count > 1 else ''}]"
        node.add(Text.assemble((f"{mark} ", style), d["text"], (origin, "dim")))
    if len(groups) > len(shown):
        hidden = units.several(len(groups) - len(shown), "more decision")
        node.add(Text(f"{hidden} (--all)", style="dim"))


def _passes(node: Tree, passes: list[dict[str, Any]], everything: bool) -> None:
    if not passes:
        return
    stages: dict[str, float] = defaultdict(float)
    for p in passes:
        stages[p["stage"]] += p["seconds"]
    told = ", ".join(f"{stage} {units.seconds(s)}" for stage, s in stages.items())
    branch = node.add(Text.assemble(("time per stage of the compiler: ", "bold"), told))
    slowest = sorted(passes, key=lambda p: -p["seconds"])
    for p in slowest if everything else slowest[:PASSES]:
        branch.add(Text(f"{p['stage']} {p['name']}: {units.seconds(p['seconds'])}"))
