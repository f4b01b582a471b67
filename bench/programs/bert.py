"""BERT with random weights, as PyTorch users write it."""

from __future__ import annotations

import math

import torch
from torch import nn

_EPS = 1e-12


class Layer(nn.Module):
    """Self-attention and a feed-forward part, each with a shortcut and a normalization.

    (Devlin et al., 2018; Vaswani et al., 2017, figure 1, left.) (N, T, hidden) -> the same.
    """

    def __init__(self, hidden: int, heads: int, intermediate: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.joined = (
            nn.Linear(hidden, hidden) for _ in range(4)
        )
        self.attended = nn.LayerNorm(hidden, _EPS)
        self.wide = nn.Linear(hidden, intermediate)
        self.narrow = nn.Linear(intermediate, hidden)
        self.done = nn.LayerNorm(hidden, _EPS)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """``mask`` is added to the scores: 0, or the least float where nothing is attended to."""
        batch, length, hidden = x.shape
        split = (batch, length, self.heads, hidden // self.heads)
        q, k, v = (
            part(x).view(split).transpose(1, 2) for part in (self.query, self.key, self.value)
        )
        scores = q @ k.transpose(-1, -2) / math.sqrt(split[-1]) + mask
        context = (torch.softmax(scores, -1) @ v).transpose(1, 2).reshape(batch, length, hidden)
        x = self.attended(x + self.joined(context))
        return self.done(x + self.narrow(nn.functional.gelu(self.wide(x))))


class Bert(nn.Module):
    """Tokens (N, T) and which of them count (N, T) -> states (N, T, hidden) and (N, hidden).

    The sizes are BERT-base's.
    """

    def __init__(
        self, layers: int = 12, hidden: int = 768, heads: int = 12, vocabulary: int = 30522
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, hidden)
        self.places = nn.Embedding(512, hidden)
        self.types = nn.Embedding(2, hidden)
        self.norm = nn.LayerNorm(hidden, _EPS)
        self.layers = nn.ModuleList(Layer(hidden, heads, 4 * hidden) for _ in range(layers))
        self.pooler = nn.Linear(hidden, hidden)

    def forward(
        self, tokens: torch.Tensor, counts: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The last states, and what is made of the first token's."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.words(tokens) + self.places(places) + self.types(torch.zeros_like(tokens))
        mask = (1.0 - counts[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        x = self.norm(x)
        for layer in self.layers:
            x = layer(x, mask)
        return x, torch.tanh(self.pooler(x[:, 0]))


class BertStates(Bert):
    """The same without what is made of the first token: (N, T) -> states (N, T, hidden)."""

    def forward(self, tokens: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        """The last states."""
        return super().forward(tokens, counts)[0]
