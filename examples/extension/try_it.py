"""Shows that the extension is at work: compile with it installed and look at its decision."""

from __future__ import annotations

import sys

import torch

import polyblocks
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch


def thirds(x: torch.Tensor) -> torch.Tensor:
    return x / 3.0 + 1.0


def main() -> int:
    """The exit status is 1 if the extension is not installed."""
    x = torch.linspace(-10, 10, 1000)
    with polyblocks.explain() as report:
        y = polyblocks_jit_torch(thirds)(x)
    print("largest difference:", (y - thirds(x)).abs().max().item())
    decisions = [d for part in report.parts for d in part.report["decisions"]]
    ours = [d for d in decisions if d["pass"] == "reciprocal-division"]
    print(ours or "the pass did not run; pip install ./examples/extension")
    return 0 if ours else 1


if __name__ == "__main__":
    sys.exit(main())
