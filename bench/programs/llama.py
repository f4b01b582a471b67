"""Llama with random weights, as PyTorch users write it (Touvron et al., 2023)."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention, silu


class RMSNorm(nn.Module):
    """Values over the root of the mean of their squares, scaled."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The same shape."""
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


def turns(places: torch.Tensor, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines of rotary embeddings (Su et al., 2021): places (T) -> (T, size) each."""
    speeds = 10000.0 ** (-torch.arange(0, size, 2, device=places.device) / size)
    angles = torch.cat([places[:, None] * speeds] * 2, -1)
    return angles.cos(), angles.sin()


def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Pairs of numbers, half of a head apart, turned by an angle for each place."""
    first, second = x.chunk(2, -1)
    return x * cos.to(x.dtype) + torch.cat([-second, first], -1) * sin.to(x.dtype)


class Layer(nn.Module):
    """Attention with groups of heads that share keys, and SwiGLU, each behind a normalization.

    (N, T, hidden) -> the same. With caches of keys and values, (N, groups, length, size) each, the
    new ones are stored at their places, and what is stored up to there is attended to.
    """

    def __init__(
        self, hidden: int = 1024, heads: int = 16, groups: int = 4, inner: int = 2816
    ) -> None:
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, hidden // heads
        self.first, self.second = RMSNorm(hidden), RMSNorm(hidden)
        self.query = nn.Linear(hidden, hidden, bias=False)
        self.key = nn.Linear(hidden, groups * self.size, bias=False)
        self.value = nn.Linear(hidden, groups * self.size, bias=False)
        self.joined = nn.Linear(hidden, hidden, bias=False)
        self.gate = nn.Linear(hidden, inner, bias=False)
        self.wide = nn.Linear(hidden, inner, bias=False)
        self.narrow = nn.Linear(inner, hidden, bias=False)

    def forward(self, x: torch.Tensor, places: torch.Tensor, *caches: torch.Tensor) -> torch.Tensor:
        """The states after both parts."""
        batch, length, hidden = x.shape
        y = self.first(x)
        cos, sin = turns(places, self.size)
        q, k, v = (
            part(y).view(batch, length, -1, self.size).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        q, k = rotated(q, cos, sin), rotated(k, cos, sin)
        if caches:
            keys, values = caches
            k, v = keys.index_copy_(2, places, k), values.index_copy_(2, places, v)
        seen = torch.arange(k.shape[2], device=x.device)[None, :] <= places[:, None]
        y = scaled_dot_product_attention(q, k, v, attn_mask=seen, enable_gqa=True)
        x = x + self.joined(y.transpose(1, 2).reshape(batch, length, hidden))
        y = self.second(x)
        return x + self.narrow(silu(self.gate(y)) * self.wide(y))


class Llama(nn.Module):
    """Tokens (N, T) at their places (T) -> the token that follows (N, 1), with a static cache."""

    def __init__(
        self,
        layers: int = 4,
        hidden: int = 512,
        heads: int = 8,
        groups: int = 2,
        vocabulary: int = 8192,
        length: int = 256,
        batch: int = 1,
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, hidden)
        self.layers = nn.ModuleList(
            Layer(hidden, heads, groups, 11 * hidden // 4) for _ in range(layers)
        )
        self.norm = RMSNorm(hidden)
        self.head = nn.Linear(hidden, vocabulary, bias=False)
        cache = torch.zeros(2 * layers, batch, groups, length, hidden // heads)
        for number, part in enumerate(cache):
            self.register_buffer(f"cache{number}", part.clone())

    def forward(self, tokens: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """The most likely one."""
        return self.scores(tokens, places).argmax(-1, keepdim=True)

    def scores(self, tokens: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """Of each that may follow (N, vocabulary), before softmax."""
        x, caches = self.words(tokens), list(self.buffers(recurse=False))
        for number, layer in enumerate(self.layers):
            x = layer(x, places, *caches[2 * number : 2 * number + 2])
        return self.head(self.norm(x[:, -1]))

    def generate(self, prompt: torch.Tensor, count: int) -> torch.Tensor:
        """The next ``count`` tokens: a call for the prompt, and one for each but the last."""
        found = [self(prompt, torch.arange(prompt.shape[1]))]
        for place in range(prompt.shape[1], prompt.shape[1] + count - 1):
            found.append(self(found[-1], torch.tensor([place])))
        return torch.cat(found, 1)
