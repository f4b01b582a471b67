"""The explanation as one HTML file that needs nothing else: no network, no other files."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from importlib.resources import files
from typing import Any

from polyblocks.explanation import units
from polyblocks.explanation.decisions import grouped
from polyblocks.explanation.document import peak_of, verdicts
from polyblocks.explanation.tree import basis, misprediction, places, predicted_for, unmeasured

#: Kernels and passes in view; what comes after them is folded.
KERNELS = 15
PASSES = 12
#: Inputs, and outputs, that are listed.
ARGUMENTS = 8
#: Resources that are no memory level, in words.
RESOURCES = {"compute": "arithmetic", "launch": "starting threads", "latency": "waiting"}
#: A space between a number and its unit.
_UNIT = re.compile(
    r"(?<=\d) (?=(?:[KMGT]?i?B|s|ms|µs|ns|[kMGT]?FLOP|times|threads|instructions)\b|%)"
)


def page(document: dict[str, Any]) -> str:
    """HTML of a document, see :func:`polyblocks.explanation.document.document`."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    for name in ("nbytes", "seconds", "rate", "count", "percent"):
        environment.filters[name] = _unbroken(getattr(units, name))
    for name in ("shape", "several", "three", "place"):
        environment.filters[name] = getattr(units, name)
    environment.filters["joined"] = _joined
    environment.globals.update(
        unmeasured=unmeasured,
        basis=basis,
        predicted_for=predicted_for,
        places=places,
        misprediction=misprediction,
        verdicts=verdicts,
        stages=_stages,
        grouped=grouped,
        decisions_of=_decisions_of,
        levels_of=_levels_of,
    )
    folder = files("polyblocks.explanation")
    template = environment.from_string((folder / "page.html.jinja").read_text())
    return template.render(
        document=document,
        style=(folder / "page.css").read_text(),
        kernels_in_view=KERNELS,
        passes_in_view=PASSES,
        arguments_in_view=ARGUMENTS,
    )


def _unbroken(tell: Callable[..., str]) -> Callable[..., str]:
    """The same text, in one line with its unit."""
    return lambda *arguments: tell(*arguments).replace(" ", "\N{NO-BREAK SPACE}")


def _joined(text: str) -> str:
    """A sentence whose numbers stay in one line with their units."""
    return _UNIT.sub("\N{NO-BREAK SPACE}", text)


def _stages(part: dict[str, Any]) -> dict[str, float]:
    """Seconds of each stage of the compiler, in order."""
    stages: dict[str, float] = defaultdict(float)
    for p in part["passes"]:
        stages[p["stage"]] += p["seconds"]
    return dict(stages)


def _decisions_of(part: dict[str, Any], kernel: dict[str, Any]) -> list[tuple[dict[str, Any], int]]:
    """The decisions that made a kernel what it is, and how many like each there were."""
    return grouped(
        d for d in part["decisions"] if kernel["name"] in d["kernels"] and d["accepted"] is not None
    )


def _levels_of(part: dict[str, Any], kernel: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of a kernel's table: each memory level, then arithmetic, then what else takes time.

    ``seconds`` is None where the time is unknown.
    """
    estimate = kernel["estimate"]
    seconds: dict[str, float] = estimate["seconds"]
    longest = max(seconds.values(), default=0.0) or 1.0
    rates = {level["name"]: level["bandwidth"] for level in (part["chip"] or {}).get("memory", ())}
    rows = [
        {
            "name": name,
            "work": units.nbytes(moved),
            "rate": units.rate(rates[name], "B") if rates.get(name) else "",
            "seconds": seconds.get(name),
        }
        for name, moved in estimate["bytes"].items()
    ]
    peak = peak_of(kernel["unit"], part["chip"])
    rows.append(
        {
            "name": "arithmetic",
            "work": f"{units.count(estimate['flops'])} FLOP",
            "rate": units.rate(peak, "FLOP") if peak else "",
            "seconds": seconds.get("compute"),
        }
    )
    rows += [
        {"name": RESOURCES.get(name, name), "work": "", "rate": "", "seconds": takes}
        for name, takes in seconds.items()
        if name not in estimate["bytes"] and name != "compute" and takes
    ]
    bound = estimate.get("bound", "")
    bound = RESOURCES.get(bound, bound)
    return [
        row | {"share": float(str(row["seconds"] or 0)) / longest, "bound": row["name"] == bound}
        for row in rows
    ]
