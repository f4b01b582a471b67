"""Attention in PyTorch: heads x length x size, batches in front."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.nn.functional import cross_entropy as loss_of
from torch.nn.functional import scaled_dot_product_attention

from bench.attention.table import CAP, DOCUMENT, WINDOW


def library(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The framework's operation."""
    return scaled_dot_product_attention(q, k, v)


def causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The same, of keys that are not later."""
    return scaled_dot_product_attention(q, k, v, is_causal=True)


def grouped(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The same, with several query heads for a key head."""
    return scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


def grouped_decode(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """One query, which sees all keys."""
    return scaled_dot_product_attention(q, k, v, enable_gqa=True)


def cached_decode(
    q: Tensor, keys: Tensor, values: Tensor, k: Tensor, v: Tensor, place: Tensor
) -> Tensor:
    """One query, which sees the keys up to its place; the key and value there are stored before."""
    keys.index_copy_(2, place, k)
    values.index_copy_(2, place, v)
    seen = torch.arange(keys.shape[2]) <= place
    return scaled_dot_product_attention(q, keys, values, attn_mask=seen[None], enable_gqa=True)


def _scores(q: Tensor, k: Tensor) -> Tensor:
    return (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5


def _distance(q: Tensor, k: Tensor) -> Tensor:
    return torch.arange(q.shape[-2])[:, None] - torch.arange(k.shape[-2])[None, :]


def written(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Two products with a softmax between them."""
    return torch.softmax(_scores(q, k), -1) @ v


def capped(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal, of scores that cannot be larger than a cap, as in Gemma 2."""
    scores = CAP * torch.tanh(_scores(q, k) / CAP)
    return torch.softmax(scores.masked_fill(_distance(q, k) < 0, float("-inf")), -1) @ v


def window(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal, of the nearest keys."""
    distance = _distance(q, k)
    scores = _scores(q, k).masked_fill((distance < 0) | (distance >= WINDOW), float("-inf"))
    return torch.softmax(scores, -1) @ v


def _same_document(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
    return i // DOCUMENT == j // DOCUMENT


def _not_later(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
    return i >= j


# Made once, as programs do, for the lengths of the table and of its tests.
_DOCUMENTS = {
    n: create_block_mask(_same_document, None, None, n, n, device="cpu") for n in (2048, 520)
}
_CAUSAL = {n: create_block_mask(_not_later, None, None, n, n, device="cpu") for n in (1024, 9)}


def documents(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Places see those of their document."""
    return flex_attention(q, k, v, block_mask=_DOCUMENTS[q.shape[2]])


def alibi(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal, of scores that fall with the distance, at each head's rate."""
    rate = 8 / q.shape[1]

    def falling(s: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return s + (j - i) * torch.exp2(-rate * (h + 1))

    return flex_attention(q, k, v, score_mod=falling, block_mask=_CAUSAL[q.shape[2]])


def biased(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
    """Scores that are not scaled, with a bias by position, as in T5."""
    return torch.softmax(q @ k.transpose(-1, -2) + bias, -1) @ v


def cross_entropy(states: Tensor, words: Tensor, following: Tensor) -> Tensor:
    """The loss over a vocabulary whose embeddings are the last layer's weights."""
    return loss_of(states @ words.T, following)


def kernel_sum(x: Tensor, y: Tensor, w: Tensor) -> Tensor:
    """Sums of weights over all points, by a kernel of the distance."""
    squares = (x * x).sum(-1)[:, None] + (y * y).sum(-1)[None, :]
    return torch.exp(2 * (x @ y.T) - squares) @ w
