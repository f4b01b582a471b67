"""MobileNetV2 with random weights, as PyTorch users write it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

#: Expansion, channels, blocks and stride of the first of them (Sandler et al., 2018, table 2).
STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


def convolution(inputs: int, outputs: int, kernel: int, stride: int, groups: int) -> nn.Sequential:
    """A convolution, a normalization and a ReLU6."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU6(inplace=True),
    )


class InvertedResidual(nn.Module):
    """Expansion, depthwise convolution, linear projection (Sandler et al., 2018, figure 3b)."""

    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int) -> None:
        super().__init__()
        hidden = expansion * inputs
        self.shortcut = stride == 1 and inputs == outputs
        self.body = nn.Sequential(
            *([convolution(inputs, hidden, 1, 1, 1)] if expansion > 1 else []),
            convolution(hidden, hidden, 3, stride, hidden),
            nn.Conv2d(hidden, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The residual, added to the input where their sizes agree."""
        y = self.body(x)
        return x + y if self.shortcut else y


class MobileNetV2(nn.Module):
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
        for expansion, outputs, count, first in stages:
            for stride in (first, *[1] * (count - 1)):
                parts.append(InvertedResidual(inputs, outputs, stride, expansion))
                inputs = outputs
        self.features = nn.Sequential(*parts, convolution(inputs, last, 1, 1, 1))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(last, classes))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores before softmax."""
        return self.classifier(torch.flatten(self.pool(self.features(x)), 1))
