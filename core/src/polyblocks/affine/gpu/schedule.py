"""A kernel's schedule as data: what ``choose-kernels`` decides and ``emit-kernels`` obeys."""

from __future__ import annotations

import re
from typing import Any

from polyblocks.affine.cost.predicted import Predicted
from polyblocks.affine.gpu.plans.kernel import Kernel
from polyblocks.affine.gpu.plans.numbers import Numbers
from polyblocks.affine.plan.schedule import printed


def schedule_of(
    kernel: Kernel, numbers: Numbers, name: str, resident: int, predicted: Predicted | None
) -> dict[str, Any]:
    """The schedule of a kernel.

    Args:
        kernel: as it is to run.
        numbers: of its nest, from before atomic updates were formed.
        name: of the kernel.
        resident: blocks that a multiprocessor is to hold at once.
        predicted: what it takes, if that is known.
    """
    common: dict[str, Any] = {"kernel": name, "resident": resident}
    if predicted is not None:
        times = predicted.numbers()
        common["predicted"] = {key: s for key, s in times.items() if s is not None}
    return printed(kernel.plan.kind, {**common, **kernel.plan.schedule(numbers)})


def unique_name(requested: str, taken: set[str]) -> str:
    """A symbol like the requested name that is not taken yet; it is from now on."""
    base = re.sub(r"[^A-Za-z0-9_]", "_", requested) or "kernel"
    if base[0].isdigit():
        base = f"k{base}"
    name, number = base, 0
    while name in taken:
        number += 1
        name = f"{base}_{number}"
    taken.add(name)
    return name
