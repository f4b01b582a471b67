"""A compiled program's name in a profiler: the kernels that take its time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def kernel_label(manifest: Mapping[str, Any]) -> str:
    """The kernel that is predicted to take longest, and how many others there are.

    Args:
        manifest: of the program's artifact.

    Returns:
        ``matmul_tanh``, or ``matmul_tanh and 3 more``; ``no kernel`` for a program without any.
    """
    kernels = manifest.get("kernels") or ()
    if not kernels:
        return "no kernel"
    longest = max(kernels, key=_predicted_seconds)
    others = len(kernels) - 1
    return f"{longest['name']} and {others} more" if others else str(longest["name"])


def _predicted_seconds(kernel: Mapping[str, Any]) -> float:
    estimate = kernel.get("estimate") or {}
    return float(kernel.get("calls", 1) * (estimate.get("predicted_seconds") or 0.0))
