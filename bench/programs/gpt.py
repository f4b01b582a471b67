"""GPT-2 with random weights, as PyTorch users write it (Radford et al., 2019)."""

from __future__ import annotations

import torch
from torch import nn


class Layer(nn.Module):
    """Causal self-attention and a feed-forward part, each behind a normalization.

    (N, T, hidden) -> the same.
    """

    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.joint, self.joined = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.wide, self.narrow = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The states after both parts."""
        batch, length, hidden = x.shape
        split = (batch, length, self.heads, hidden // self.heads)
        parts = self.joint(self.first(x)).split(hidden, 2)
        q, k, v = (part.view(split).transpose(1, 2) for part in parts)
        context = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.joined(context.transpose(1, 2).reshape(batch, length, hidden))
        return x + self.narrow(nn.functional.gelu(self.wide(self.second(x)), approximate="tanh"))


class GPT2(nn.Module):
    """Tokens (N, T) -> scores (N, T, vocabulary). The sizes are those of the smallest GPT-2."""

    def __init__(
        self, layers: int = 12, hidden: int = 768, heads: int = 12, vocabulary: int = 50257
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, hidden)
        self.places = nn.Embedding(1024, hidden)
        self.layers = nn.Sequential(*(Layer(hidden, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(hidden)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Scores before softmax, by the embedding of the tokens."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.layers(self.words(tokens) + self.places(places))
        return self.norm(x) @ self.words.weight.T
