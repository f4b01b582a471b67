"""EfficientNet-B0 with random weights, as PyTorch users write it (Tan and Le, 2019)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

#: Expansion, channels, blocks, stride of the first of them, and window (table 1).
STAGES = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)


def convolution(inputs: int, outputs: int, kernel: int, stride: int, groups: int) -> nn.Sequential:
    """A convolution, a normalization and a SiLU."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
        nn.SiLU(inplace=True),
    )


class SqueezeExcitation(nn.Module):
    """Channels, scaled by what two linear layers make of their means (Hu et al., 2018)."""

    def __init__(self, channels: int, squeezed: int) -> None:
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.down, self.up = nn.Conv2d(channels, squeezed, 1), nn.Conv2d(squeezed, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The same shape."""
        return x * self.up(nn.functional.silu(self.down(self.pool(x)))).sigmoid()


class Block(nn.Module):
    """Expansion, depthwise convolution, scaled channels, linear projection (MBConv)."""

    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int, kernel: int) -> None:
        super().__init__()
        hidden = expansion * inputs
        self.shortcut = stride == 1 and inputs == outputs
        self.body = nn.Sequential(
            *([convolution(inputs, hidden, 1, 1, 1)] if expansion > 1 else []),
            convolution(hidden, hidden, kernel, stride, hidden),
            SqueezeExcitation(hidden, max(1, inputs // 4)),
            nn.Conv2d(hidden, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The residual, added to the input where their sizes agree."""
        y = self.body(x)
        return x + y if self.shortcut else y


class EfficientNetB0(nn.Module):
    """Images (N, 3, H, W) -> scores (N, classes)."""

    def __init__(
        self,
        stages: Sequence[tuple[int, ...]] = STAGES,
        inputs: int = 32,
        last: int = 1280,
        classes: int = 1000,
    ) -> None:
        """``inputs`` and ``last`` are the channels before and behind the stages."""
        super().__init__()
        parts: list[nn.Module] = [convolution(3, inputs, 3, 2, 1)]
        for expansion, outputs, count, first, kernel in stages:
            for stride in (first, *[1] * (count - 1)):
                parts.append(Block(inputs, outputs, stride, expansion, kernel))
                inputs = outputs
        self.features = nn.Sequential(*parts, convolution(inputs, last, 1, 1, 1))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(last, classes))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores before softmax."""
        return self.classifier(torch.flatten(self.pool(self.features(x)), 1))
