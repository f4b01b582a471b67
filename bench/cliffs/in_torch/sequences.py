"""Layers of sequences: attention, normalizations, recurrences, embeddings of positions."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn import functional

from bench.cliffs.case import Array, Case, Draw, rows

Maker = Callable[[Draw, int], tuple[Array, ...]]


def _heads(length: int, heads: int = 8, width: int = 64) -> Maker:
    def make(draw: Draw, n: int) -> tuple[Array, ...]:
        batch = max(1, n // (3 * heads * length * width))
        return tuple(draw.normal(batch, heads, length, width) for _ in range(3))

    return make


def _decode(draw: Draw, n: int) -> tuple[Array, ...]:
    length = max(128, n // 2 // (8 * 128))
    query = draw.normal(1, 8, 1, 128)
    return query, draw.normal(1, 8, length, 128), draw.normal(1, 8, length, 128)


def _layer(draw: Draw, n: int) -> tuple[Array, ...]:
    return draw.normal(*rows(n, 768)), draw.normal(768), draw.normal(768)


def _rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    low, high = x.chunk(2, -1)
    return x * cos + torch.cat((-high, low), -1) * sin


def _rotary(draw: Draw, n: int) -> tuple[Array, ...]:
    count = max(1, n // (8 * 256 * 64))
    return draw.normal(count, 8, 256, 64), draw.normal(256, 64), draw.normal(256, 64)


def _recurrence(x: torch.Tensor, decay: torch.Tensor) -> torch.Tensor:
    state = torch.zeros_like(x[0])
    found = []
    for step in x.unbind(0):
        state = state * decay + step
        found.append(state)
    return torch.stack(found)


_attention = functional.scaled_dot_product_attention

CASES = (
    Case("attention, 256", _attention, _heads(256), gradient=True),
    Case("attention, 1024", _attention, _heads(1024)),
    Case(
        "attention, causal, 512",
        lambda q, k, v: _attention(q, k, v, is_causal=True),
        _heads(512),
        gradient=True,
    ),
    Case("attention, one query", _attention, _decode),
    Case(
        "layer_norm", lambda x, w, b: functional.layer_norm(x, (768,), w, b), _layer, gradient=True
    ),
    Case("rms_norm", lambda x, w, b: functional.rms_norm(x, (768,), w) + b, _layer, gradient=True),
    Case("rotary embedding", _rotated, _rotary, gradient=True),
    Case(
        "gelu then linear",
        lambda x, w: functional.linear(functional.gelu(x), w),
        lambda d, n: (d.normal(*rows(n // 4, 512)), d.normal(512, 512) / 16),
        gradient=True,
    ),
    Case(
        "swiglu",
        lambda x, w, v: functional.silu(x @ w) * (x @ v),
        lambda d, n: (
            d.normal(*rows(n // 8, 512)),
            d.normal(512, 512) / 16,
            d.normal(512, 512) / 16,
        ),
        gradient=True,
    ),
    Case(
        "bilinear",
        functional.bilinear,
        lambda d, n: (d.normal(n // 1024, 32), d.normal(n // 1024, 32), d.normal(16, 32, 32)),
    ),
    Case(
        "recurrence of 32 steps",
        _recurrence,
        lambda d, n: (d.normal(32, n // 32), d.uniform(0.5, 0.9, n // 32)),
        gradient=True,
    ),
    Case(
        "cosine_similarity",
        functional.cosine_similarity,
        lambda d, n: (d.normal(*rows(n // 2, 256)), d.normal(*rows(n // 2, 256))),
        gradient=True,
    ),
    Case(
        "pairwise_distance",
        functional.pairwise_distance,
        lambda d, n: (d.normal(*rows(n // 2, 256)), d.normal(*rows(n // 2, 256))),
    ),
)
