"""What reports of compiled functions say of their time and their kernels."""

from __future__ import annotations

from typing import Any


def predicted_seconds(report: dict[str, Any]) -> float | None:
    """What the cost model expects of one call; None if it says nothing about some kernel."""
    kernels = [kernel for part in report["parts"] for kernel in part["kernels"]]
    estimates = [kernel.get("estimate") for kernel in kernels]
    if not kernels or any("predicted_seconds" not in (e or {}) for e in estimates):
        return None
    # Of a kernel that is called several times the estimate is that of all its calls.
    return sum(estimate["predicted_seconds"] for estimate in estimates)


def of_last_call(made: Any) -> dict[str, Any]:
    """``predicted`` (seconds) and ``kernels`` of the last program of a compiled function."""
    found = made.polyblocks_report().to_json()
    kernels = sum(len(part["kernels"]) for part in found["parts"])
    return {"predicted": predicted_seconds(found), "kernels": kernels}
