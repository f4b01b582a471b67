"""A vision transformer with random weights, as PyTorch users write it.

(Dosovitskiy et al., 2021.)
"""

from __future__ import annotations

import torch
from torch import nn


class Layer(nn.Module):
    """Self-attention and a feed-forward part, each behind a normalization; (N, T, hidden)."""

    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(hidden, 1e-6), nn.LayerNorm(hidden, 1e-6)
        self.joint, self.joined = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.wide, self.narrow = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The states after both parts."""
        batch, length, hidden = x.shape
        parts = self.joint(self.first(x)).view(batch, length, 3, self.heads, -1)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        context = nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + self.joined(context.transpose(1, 2).reshape(batch, length, hidden))
        return x + self.narrow(nn.functional.gelu(self.wide(self.second(x))))


class ViT(nn.Module):
    """Square images (N, 3, side, side) -> scores (N, classes). The sizes are those of ViT-B/16."""

    def __init__(
        self,
        layers: int = 12,
        hidden: int = 768,
        heads: int = 12,
        side: int = 224,
        classes: int = 1000,
    ) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, hidden, 16, 16)
        self.first = nn.Parameter(torch.randn(1, 1, hidden) * 0.02)
        self.places = nn.Parameter(torch.randn(1, (side // 16) ** 2 + 1, hidden) * 0.02)
        self.layers = nn.Sequential(*(Layer(hidden, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(hidden, 1e-6)
        self.head = nn.Linear(hidden, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores before softmax, of the first state."""
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.head(self.norm(self.layers(x))[:, 0])
