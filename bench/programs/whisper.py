"""Whisper's encoder with random weights, as PyTorch users write it (Radford et al., 2022)."""

from __future__ import annotations

import torch
from torch import nn

from bench.programs.vit import Layer


class WhisperEncoder(nn.Module):
    """Mel spectrograms (N, 80, 2 T) -> states (N, T, hidden). The sizes are those of the base."""

    def __init__(
        self, layers: int = 6, hidden: int = 512, heads: int = 8, length: int = 1500
    ) -> None:
        super().__init__()
        self.first = nn.Conv1d(80, hidden, 3, padding=1)
        self.second = nn.Conv1d(hidden, hidden, 3, 2, padding=1)
        self.places = nn.Parameter(torch.randn(length, hidden) * 0.02)
        self.layers = nn.Sequential(*(Layer(hidden, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The last states."""
        x = nn.functional.gelu(self.second(nn.functional.gelu(self.first(x))))
        return self.norm(self.layers(x.transpose(1, 2) + self.places))
