"""Random convolutions on simulated GPUs with matrix units, against float64.

``python tests/slow/random_convolutions.py --count 60``: one and two dimensions, windows, strides,
dilations, paddings, groups, transposed ones, both layouts, both 16-bit types, epilogues; three in
four take any kernel of a unit that could be chosen in the place of the best one. An error may be
twice PyTorch's own.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT)]

from tests.extended.test_kernels_simulated import simulate  # noqa: E402
from tests.support.any_unit import any_unit  # noqa: E402

CHIPS = ("sm_80", "gfx1100", "gfx1200", "sm_75", "sm_90a")


def main() -> int:
    """Run the samples; the exit status is 1 if one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--first", type=int, default=0, help="number of the first sample")
    parser.add_argument("--arch", choices=CHIPS, action="append", help="default: all in turn")
    arguments = parser.parse_args()
    archs = arguments.arch or CHIPS
    outcomes: Counter[str] = Counter()
    for number in range(arguments.first, arguments.first + arguments.count):
        arch = archs[number % len(archs)]
        outcome, told = run(number, arch)
        outcomes[outcome] += 1
        if not outcome.startswith("right"):
            print(f"{number} {arch}: {outcome}: {told}", flush=True)
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())))
    return int(any(not outcome.startswith("right") for outcome in outcomes))


def run(number: int, arch: str) -> tuple[str, str]:
    """What became of a sample, and what it was."""
    numbers = random.Random(number)
    torch.manual_seed(number)
    pick = numbers.choice
    halves = [torch.float16] if arch == "sm_75" else [torch.float16, torch.bfloat16]
    dtype, dims, transposed = pick(halves), pick([1, 2, 2, 2]), pick([False, False, False, True])
    last = dims == 2 and numbers.random() < 0.5
    groups = pick([1, 1, 1, 2, 4])
    inputs, outputs = (groups * pick([1, 3, 8, 16, 24]) for _ in range(2))
    window = [pick([1, 2, 3, 3, 5, 7]) for _ in range(dims)]
    stride, dilation = ([pick([1, 1, 2, 3]) for _ in range(dims)] for _ in range(2))
    reach = [(w - 1) * d + 1 for w, d in zip(window, dilation, strict=True)]
    padding = [numbers.randint(0, r // 2) for r in reach]
    size = [numbers.randint(max(r, 2), r + pick([3, 12])) for r in reach]
    batch, epilogue = pick([1, 2, 3]), pick(["", "relu", "bias"])
    x = torch.randn(batch, inputs, *size).to(dtype)
    between = (inputs, outputs // groups) if transposed else (outputs, inputs // groups)
    w = torch.randn(*between, *window).to(dtype)
    b = torch.randn(outputs).to(dtype)
    if last:
        # As other tensors' views: arguments of the simulator are dense.
        x, w = (t.permute(0, 2, 3, 1).contiguous() for t in (x, w))
    name = f"conv{'_transpose' if transposed else ''}{dims}d"

    def function(x: Any, w: Any, b: Any) -> Any:
        if last:
            x, w = (t.permute(0, 3, 1, 2) for t in (x, w))
        given = b if epilogue == "bias" else None
        y = getattr(functional, name)(
            x, w, given, stride=stride, padding=padding, dilation=dilation, groups=groups
        )
        y = torch.relu(y) if epilogue == "relu" else y
        return y.permute(0, 2, 3, 1) if last else y

    anything = numbers.random() < 0.75
    told = (
        f"{name} {dtype} {tuple(x.shape)} {tuple(w.shape)} stride={stride} padding={padding} "
        f"dilation={dilation} groups={groups} last={last} {epilogue} any={anything}"
    )

    called = function if epilogue == "bias" else (lambda x, w: function(x, w, None))
    given = [x, w, b] if epilogue == "bias" else [x, w]
    with any_unit(numbers if anything else None):
        results, launches = simulate(called, given, arch)
    if findings := [str(f) for launch in launches for f in launch.findings]:
        return "finding", f"{told}: {findings[0]}"
    expected = called(*(t.double() for t in given))
    eager = (called(*given).double() - expected).abs().max()
    found = torch.from_numpy(results[0])
    found = found.view(dtype) if dtype is torch.bfloat16 else found
    error = (found.double() - expected).abs().max()
    if not error <= 2 * eager + 1e-6:
        return "wrong", f"{told}: error {error:.2e}, eager's {eager:.2e}"
    used = sum(launch.counts.instructions.get("matrix", 0) for launch in launches)
    return "right" if used else "right, without a unit", told


if __name__ == "__main__":
    sys.exit(main())
