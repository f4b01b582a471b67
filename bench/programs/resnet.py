"""ResNet-18 and ResNet-50 with random weights, as PyTorch users write them."""

from __future__ import annotations

import torch
from torch import nn


def shortcut(inputs: int, outputs: int, stride: int) -> nn.Module:
    """The input itself, or projected where the sizes differ (He et al., 2015, option B)."""
    if stride == 1 and inputs == outputs:
        return nn.Identity()
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))


class Block(nn.Module):
    """Two 3x3 convolutions and a shortcut (He et al., 2015, figure 2)."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = shortcut(inputs, outputs, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The residual and the shortcut, added."""
        y = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions and a shortcut (He et al., 2015, figure 5, right).

    The 3x3 convolution has the stride, not the first one (version 1.5).
    """

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = 4 * width
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = shortcut(inputs, outputs, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The residual and the shortcut, added."""
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        return self.relu(self.bn3(self.conv3(y)) + self.shortcut(x))


class ResNet(nn.Module):
    """Images (N, 3, H, W) -> scores (N, classes)."""

    def __init__(
        self,
        block: type[nn.Module],
        counts: tuple[int, ...],
        expansion: int,
        width: int,
        classes: int,
    ) -> None:
        """
        Args:
            block: takes inputs, width and stride; gives ``expansion`` times its width.
            counts: blocks of each stage, of which there are at most four.
            expansion: see ``block``.
            width: of the first stage's blocks; each stage doubles it.
            classes: that are scored.
        """
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 7, 2, 3, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, 1),
        )
        blocks = []
        inputs = width
        for number, (first, count) in enumerate(zip((1, 2, 2, 2), counts, strict=False)):
            for stride in (first, *[1] * (count - 1)):
                blocks.append(block(inputs, width << number, stride))
                inputs = expansion * width << number
        self.blocks = nn.Sequential(*blocks)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(inputs, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores before softmax."""
        return self.fc(torch.flatten(self.pool(self.blocks(self.stem(x))), 1))


class ResNet18(ResNet):
    """Eight blocks of two convolutions (He et al., 2015, table 1)."""

    def __init__(
        self, counts: tuple[int, ...] = (2, 2, 2, 2), width: int = 64, classes: int = 1000
    ) -> None:
        super().__init__(Block, counts, 1, width, classes)


class ResNet50(ResNet):
    """Sixteen bottlenecks (He et al., 2015, table 1)."""

    def __init__(
        self, counts: tuple[int, ...] = (3, 4, 6, 3), width: int = 64, classes: int = 1000
    ) -> None:
        super().__init__(Bottleneck, counts, 4, width, classes)
