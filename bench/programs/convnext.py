"""ConvNeXt with random weights, as PyTorch users write it (Liu et al., 2022)."""

from __future__ import annotations

import torch
from torch import nn

_EPS = 1e-6


class Block(nn.Module):
    """A depthwise convolution, then two linear layers over the channels (Liu et al., figure 4)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width, _EPS)
        self.wide = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)
        self.scale = nn.Parameter(torch.full((width,), 1e-6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The scaled residual, added to the input."""
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        y = self.scale * self.narrow(nn.functional.gelu(self.wide(y)))
        return x + y.permute(0, 3, 1, 2)


class ChannelNorm(nn.LayerNorm):
    """Layer normalization over the channels of (N, C, H, W)."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The same shape."""
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNeXt(nn.Module):
    """Images (N, 3, H, W) -> scores (N, classes). The sizes are ConvNeXt-T's."""

    def __init__(
        self,
        depths: tuple[int, ...] = (3, 3, 9, 3),
        widths: tuple[int, ...] = (96, 192, 384, 768),
        classes: int = 1000,
    ) -> None:
        super().__init__()
        parts: list[nn.Module] = [nn.Conv2d(3, widths[0], 4, 4), ChannelNorm(widths[0], _EPS)]
        inputs = widths[0]
        for depth, width in zip(depths, widths, strict=True):
            if width != inputs:
                parts += [ChannelNorm(inputs, _EPS), nn.Conv2d(inputs, width, 2, 2)]
            parts += [Block(width) for _ in range(depth)]
            inputs = width
        self.features = nn.Sequential(*parts)
        self.norm = nn.LayerNorm(inputs, _EPS)
        self.head = nn.Linear(inputs, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores before softmax."""
        return self.head(self.norm(self.features(x).mean((2, 3))))
