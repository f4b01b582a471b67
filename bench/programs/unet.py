"""A U-Net with random weights, as PyTorch users write it (Ronneberger et al., 2015), padded."""

from __future__ import annotations

import torch
from torch import nn


def twice(inputs: int, outputs: int) -> nn.Sequential:
    """Two convolutions of 3 x 3, each with normalization and ReLU."""
    parts: list[nn.Module] = []
    for width in (inputs, outputs):
        parts += [nn.Conv2d(width, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs)]
        parts.append(nn.ReLU(inplace=True))
    return nn.Sequential(*parts)


class UNet(nn.Module):
    """Images (N, 3, H, W), H and W multiples of 16 -> scores of each pixel (N, 2, H, W)."""

    def __init__(self, widths: tuple[int, ...] = (64, 128, 256, 512, 1024)) -> None:
        super().__init__()
        self.down = nn.ModuleList(
            twice(inputs, outputs) for inputs, outputs in zip((3, *widths), widths, strict=False)
        )
        ups = list(zip(widths[:0:-1], widths[-2::-1], strict=True))
        self.grow = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, 2) for a, b in ups)
        self.up = nn.ModuleList(twice(2 * b, b) for _, b in ups)
        self.head = nn.Conv2d(widths[0], 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores before softmax."""
        skipped = []
        for number, part in enumerate(self.down):
            x = part(x if number == 0 else nn.functional.max_pool2d(x, 2))
            skipped.append(x)
        skipped.pop()
        for grow, part in zip(self.grow, self.up, strict=True):
            x = part(torch.cat([skipped.pop(), grow(x)], 1))
        return self.head(x)
