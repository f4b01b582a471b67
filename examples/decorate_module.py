"""Decorating a module: a small network, compiled at the call site, and what became of it."""

from __future__ import annotations

import sys

import torch
from torch import nn

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch


class Classifier(nn.Module):
    """Batch x 3 x 32 x 32 pictures -> batch x 10 probabilities."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(4))
        self.classify = nn.Linear(8 * 8 * 8, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.features(x).flatten(1)
        return self.classify(x).softmax(-1)


def main() -> int:
    """Compile, compare with PyTorch, print the report."""
    torch.manual_seed(0)
    model = Classifier().eval()
    # The compiled module shares the parameters with the one that it was made of. `strict_target`
    # makes an error of whatever would be left to PyTorch.
    compiled = polyblocks_jit_torch(compile_options={"strict_target": True})(model)

    pictures = torch.rand(4, 3, 32, 32)
    with torch.no_grad():
        probabilities = compiled(pictures)
        print("largest difference:", (probabilities - model(pictures)).abs().max().item())

        # A new shape is a new variant, compiled at its first call.
        compiled(torch.rand(1, 3, 32, 32))

    report = compiled.polyblocks_report()
    for variant in report.variants:
        print(f"{variant.outcome}, {variant.kernels} kernels, of {', '.join(variant.arguments)}")
    print(report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
