"""What the numbers of a case mean: best peer, ratios, bars, distance to the floor and the peak."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from bench.engines import OURS, VARIANTS
from bench.errors import as_good_as

Json = dict[str, Any]

#: How many times as long as predicted, or as short, is still as predicted.
NEAR = 1.5

#: What :func:`judge` may say of a case where we failed or were too slow.
BELOW, FAILED = "below floor", "failed"


def judge(case: Json, ceilings: Json | None) -> Json:
    """The verdict on one case of the results.

    Args:
        case: all but the verdict; see :mod:`bench.report`.
        ceilings: see :func:`bench.ceilings.measure`, if measured.

    Returns:
        What does not exist (no peer ran, we failed, no Inductor) is None.
        ``way``: which is meant by ours, the fastest one of ours and its variants;
        ``best``: the fastest peer; ``to_best``, ``to_inductor``: their time over ours, in duels
        where there were any (:mod:`bench.duels`), else of the fastest calls; ``floor``: seconds
        that moving ``floor_bytes`` or the multiply-adds take, whichever is longer; ``share``: floor
        over our time, likewise; ``rate``: of ours, operations per second; ``peak_share``: part of
        the multiply-add ceiling that this is; ``misprediction``: our fastest time over the
        predicted one, or the reverse, whichever is above 1; ``compile``: seconds of our first call
        that are neither capture nor running; ``accurate``: our error is within twice eager's;
        ``met``: bar, share and accuracy all hold (False if only we failed); ``standing``: ``met``,
        or why not: ``below floor`` (``bar_floor``), ``inaccurate``, ``short`` (of the bar or the
        share) or ``failed``.
    """
    rows = {row["peer"]: row for row in case["peers"] if "minimum" in row}
    own = [name for name in (OURS, *VARIANTS) if name in rows and OURS in rows]
    way = min(own, key=lambda name: rows[name]["minimum"], default=None)
    ours = rows[way] if way else None
    others = {name: row for name, row in rows.items() if name not in (OURS, *VARIANTS)}
    best = _fastest(others, ours)
    peak = ceilings["peaks"].get(case["operands"]) if ceilings and case["flops"] else None
    floor = _floor(case, ceilings, peak)
    verdict: Json = {"way": way, "best": best, "floor": floor}
    verdict["to_best"] = _over(others[best], ours) if best else None
    verdict["to_inductor"] = _over(others["inductor"], ours) if "inductor" in others else None
    verdict["share"] = _share(ours, floor) if ours else None
    verdict["rate"] = case["flops"] / ours["minimum"] if ours and case["flops"] else None
    verdict["peak_share"] = verdict["rate"] / peak if verdict["rate"] and peak else None
    verdict["misprediction"] = _misprediction(ours) if ours else None
    verdict["compile"] = compile_seconds(ours) if ours else None
    verdict["accurate"] = _accurate(ours, others.get("eager"))
    verdict["met"] = _met(case, verdict)
    verdict["standing"] = _standing(case, verdict)
    return verdict


def compile_seconds(row: Json) -> float | None:
    """Seconds that compiling takes on top of the framework's capture; None if that is not known."""
    if row.get("overhead") is None:
        return None
    return max(0.0, row["first_call"] - row["overhead"] - row["minimum"])


def geometric_mean(ratios: Iterable[float | None]) -> float | None:
    """Of those that exist; None if none does."""
    found = [ratio for ratio in ratios if ratio is not None]
    return math.exp(math.fsum(map(math.log, found)) / len(found)) if found else None


def summary(cases: list[Json]) -> Json:
    """Over all cases: geometric means, and how many rows are judged, meet their bars, and so on.

    ``rows_below_floor`` has those that failed, too; ``predicted_near`` is the part of the predicted
    rows whose prediction is within :data:`NEAR`.
    """
    verdicts = [case["verdict"] for case in cases]
    judged = [v for v in verdicts if v["met"] is not None]
    predicted = [v["misprediction"] for v in verdicts if v["misprediction"]]
    return {
        "geomean_inductor": geometric_mean(v["to_inductor"] for v in verdicts),
        "geomean_best": geometric_mean(v["to_best"] for v in verdicts),
        "rows_met": sum(v["met"] for v in judged),
        "rows_below_floor": sum(v["standing"] in (BELOW, FAILED) for v in judged),
        "rows_judged": len(judged),
        "predicted_near": sum(x <= NEAR for x in predicted) / len(predicted) if predicted else None,
        "slowest_compile": max((v["compile"] for v in verdicts if v["compile"]), default=None),
    }


def _floor(case: Json, ceilings: Json | None, peak: float | None) -> float | None:
    if not ceilings:
        return None
    moving: float = case["floor_bytes"] / ceilings["memory"]["main"]["copy"]
    return max(moving, case["flops"] / peak) if peak else moving


def _misprediction(ours: Json) -> float | None:
    if not ours.get("predicted"):
        return None
    ratio: float = ours["minimum"] / ours["predicted"]
    return max(ratio, 1 / ratio)


def _fastest(others: dict[str, Json], ours: Json | None) -> str | None:
    """Who fought duels was among the fastest, and is compared by them."""
    fought = {name: row for name, row in others.items() if row.get("ratio")}
    if fought:
        return min(fought, key=lambda name: fought[name]["ratio"])
    return min(others, key=lambda name: others[name]["minimum"], default=None)


def _over(row: Json, ours: Json | None) -> float | None:
    if ours is None:
        return None
    ratio: float = row.get("ratio") or row["minimum"] / ours["minimum"]
    return ratio


def _share(ours: Json, floor: float | None) -> float | None:
    share: float | None = ours.get("share")
    return share or (floor / ours["minimum"] if floor else None)


def _accurate(ours: Json | None, eager: Json | None) -> bool | None:
    if ours is None or eager is None or eager["max_error"] is None:
        return None
    return ours["max_error"] is not None and as_good_as(ours["max_error"], eager["max_error"])


def _met(case: Json, verdict: Json) -> bool | None:
    if verdict["best"] is None:
        return None
    if verdict["to_best"] is None:
        return False
    enough = verdict["share"] is None or verdict["share"] >= case["copy_share"]
    return verdict["to_best"] >= case["bar"] and enough and verdict["accurate"] is not False


def _standing(case: Json, verdict: Json) -> str | None:
    if verdict["met"] is None:
        return None
    if verdict["met"]:
        return "met"
    if verdict["to_best"] is None:
        return FAILED
    if verdict["to_best"] < case["bar_floor"]:
        return BELOW
    return "inaccurate" if verdict["accurate"] is False else "short"
