"""Blocks of the U-Net of a latent diffusion model, as PyTorch users write them.

(Rombach et al., 2022; the sizes are those of the outermost level of Stable Diffusion.)
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import gelu, scaled_dot_product_attention, silu


class Residual(nn.Module):
    """Two normalized convolutions, between which the embedded time is added, and a shortcut."""

    def __init__(self, channels: int, time: int) -> None:
        super().__init__()
        self.first, self.second = (nn.GroupNorm(32, channels) for _ in range(2))
        self.into, self.out = (nn.Conv2d(channels, channels, 3, padding=1) for _ in range(2))
        self.time = nn.Linear(time, channels)

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        """(N, C, H, W), (N, time) -> (N, C, H, W)."""
        y = self.into(silu(self.first(x))) + self.time(silu(time))[:, :, None, None]
        return x + self.out(silu(self.second(y)))


class Attention(nn.Module):
    """Of states to a context: (N, T, C), (N, S, D) -> (N, T, C)."""

    def __init__(self, channels: int, context: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(channels, channels, bias=False)
        self.key, self.value = (nn.Linear(context, channels, bias=False) for _ in range(2))
        self.joined = nn.Linear(channels, channels)

    def forward(self, x: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        """The states that are attended to, joined."""
        batch, length, channels = x.shape
        q, k, v = (
            part(y).view(batch, -1, self.heads, channels // self.heads).transpose(1, 2)
            for part, y in ((self.query, x), (self.key, context), (self.value, context))
        )
        y = scaled_dot_product_attention(q, k, v)
        return self.joined(y.transpose(1, 2).reshape(batch, length, channels))


class Transformer(nn.Module):
    """Attention of the pixels to each other and to a text, and a gated feed-forward part."""

    def __init__(self, channels: int, context: int, heads: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(32, channels, eps=1e-6)
        self.into, self.out = (nn.Conv2d(channels, channels, 1) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(channels) for _ in range(3))
        self.own = Attention(channels, channels, heads)
        self.cross = Attention(channels, context, heads)
        self.wide = nn.Linear(channels, 8 * channels)
        self.narrow = nn.Linear(4 * channels, channels)

    def forward(self, x: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        """(N, C, H, W), (N, S, D) -> (N, C, H, W)."""
        shape = x.shape
        first, second, third = self.norms
        y = self.into(self.norm(x)).flatten(2).transpose(1, 2)
        z = first(y)
        y = y + self.own(z, z)
        y = y + self.cross(second(y), context)
        value, gate = self.wide(third(y)).chunk(2, -1)
        y = y + self.narrow(value * gelu(gate))
        return x + self.out(y.transpose(1, 2).reshape(shape))


class DiffusionBlocks(nn.Module):
    """Images (N, C, 64, 64), the embedded time (N, time), a text (N, S, D) -> (N, C, 64, 64)."""

    def __init__(
        self, blocks: int = 2, channels: int = 320, time: int = 1280, context: int = 768
    ) -> None:
        super().__init__()
        self.residuals = nn.ModuleList(Residual(channels, time) for _ in range(blocks))
        self.transformers = nn.ModuleList(Transformer(channels, context, 8) for _ in range(blocks))

    def forward(self, x: torch.Tensor, time: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        """What the next level is given."""
        for residual, transformer in zip(self.residuals, self.transformers, strict=True):
            x = transformer(residual(x, time), context)
        return x
