"""Gathers, scatters, look-ups and histograms."""

from __future__ import annotations

import torch
from torch.nn import functional

from bench.cliffs.case import Array, Case, Draw, rows


def _rows_and_places(draw: Draw, n: int) -> tuple[Array, ...]:
    count = max(1, n // 64)
    return draw.normal(count, 64), draw.integers(0, count, count)


def _scattered(draw: Draw, n: int) -> tuple[Array, ...]:
    """A destination, places in its first dimension, and as many rows."""
    count = max(1, n // 64)
    return draw.normal(count, 64), draw.integers(0, count, count), draw.normal(count, 64)


def _flat(draw: Draw, n: int) -> tuple[Array, ...]:
    return draw.normal(n), draw.integers(0, n, n)


def _flat_scattered(draw: Draw, n: int) -> tuple[Array, ...]:
    return draw.normal(n), draw.integers(0, n, n), draw.normal(n)


def _edges(draw: Draw, n: int) -> tuple[Array, ...]:
    """Features of nodes, and the ends of eight times as many edges."""
    nodes = max(8, n // 256)
    return (
        draw.normal(nodes, 32),
        draw.integers(0, nodes, 8 * nodes),
        draw.integers(0, nodes, 8 * nodes),
    )


def _reduced(kind: str):
    return lambda x, i, y: x.scatter_reduce(0, i, y, kind)


def _scatter_mean(x: torch.Tensor, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    total = torch.zeros_like(x).index_add(0, target, x[source])
    count = torch.zeros_like(x[:, 0]).index_add(0, target, torch.ones_like(x[source][:, 0]))
    return total / count.clamp(min=1)[:, None]


CASES = (
    Case("gather of rows", lambda x, i: x[i], _rows_and_places, gradient=True),
    Case(
        "index_select, columns",
        lambda x, i: x.index_select(1, i),
        lambda d, n: (d.normal(*rows(n, 1024)), d.integers(0, 1024, 512)),
        gradient=True,
    ),
    Case(
        "gather, rows of 256",
        lambda x, i: x.gather(1, i),
        lambda d, n: (d.normal(*rows(n, 256)), d.integers(0, 256, *rows(n, 256))),
        gradient=True,
    ),
    Case("take", torch.take, _flat),
    Case(
        "take_along_dim",
        lambda x, i: torch.take_along_dim(x, i, 1),
        lambda d, n: (d.normal(*rows(n, 256)), d.integers(0, 256, *rows(n, 256))),
    ),
    Case(
        "two indices",
        lambda x, i, j: x[i, j],
        lambda d, n: (
            d.normal(*rows(n, 512)),
            d.integers(0, n // 512, n // 2),
            d.integers(0, 512, n // 2),
        ),
    ),
    Case(
        "embedding",
        functional.embedding,
        lambda d, n: (d.integers(0, 30522, n // 256), d.normal(30522, 256)),
    ),
    Case(
        "embedding, gradients of the table",
        lambda w, i: functional.embedding(i, w),
        lambda d, n: (d.normal(30522, 128), d.integers(0, 30522, n // 128)),
        gradient=True,
    ),
    Case(
        "embedding_bag",
        lambda i, w: functional.embedding_bag(i, w, mode="sum"),
        lambda d, n: (d.integers(0, 10000, n // 1024, 32), d.normal(10000, 64)),
    ),
    Case("index_add of rows", lambda x, i, y: x.index_add(0, i, y), _scattered, gradient=True),
    Case("index_add, flat", lambda x, i, y: x.index_add(0, i, y), _flat_scattered),
    Case(
        "index_copy of rows",
        lambda x, i, y: x.index_copy(0, i, y),
        lambda d, n: (d.normal(n // 64, 64), d.permutation(n // 64), d.normal(n // 64, 64)),
    ),
    Case(
        "index_fill",
        lambda x, i: x.index_fill(0, i, 1.0),
        lambda d, n: (d.normal(n // 64, 64), d.permutation(n // 64)[: n // 256]),
    ),
    Case(
        "index_put, accumulated", lambda x, i, y: x.index_put((i,), y, accumulate=True), _scattered
    ),
    Case("index_reduce, amax", lambda x, i, y: x.index_reduce(0, i, y, "amax"), _scattered),
    Case(
        "scatter",
        lambda x, i, y: x.scatter(0, i, y),
        lambda d, n: (d.normal(n), d.permutation(n), d.normal(n)),
        gradient=True,
    ),
    Case(
        "scatter, rows of 256",
        lambda x, i, y: x.scatter(1, i, y),
        lambda d, n: (
            d.normal(*rows(n, 256)),
            d.integers(0, 256, *rows(n, 256))[:, :1],
            d.normal(*rows(n, 256))[:, :1],
        ),
    ),
    Case("scatter_add", lambda x, i, y: x.scatter_add(0, i, y), _flat_scattered, gradient=True),
    Case("scatter_reduce, mean", _reduced("mean"), _flat_scattered),
    Case("scatter_reduce, amax", _reduced("amax"), _flat_scattered),
    Case("scatter_reduce, prod", _reduced("prod"), _flat_scattered),
    Case("scatter mean over edges", _scatter_mean, _edges, gradient=True),
    Case(
        "put",
        lambda x, i, y: x.put(i, y),
        lambda d, n: (d.normal(n), d.permutation(n), d.normal(n)),
    ),
    Case(
        "masked_scatter",
        lambda x, m, y: x.masked_scatter(m, y),
        lambda d, n: (d.normal(n), d.flags(n), d.normal(n)),
    ),
    Case("histc", lambda x: torch.histc(x, 256, -4, 4), lambda d, n: (d.normal(n),)),
    Case(
        "bincount",
        lambda x: torch.bincount(x, minlength=1024),
        lambda d, n: (d.integers(0, 1024, n),),
    ),
    Case(
        "unravel_index",
        lambda i: torch.unravel_index(i, (64, 64, 1024)),
        lambda d, n: (d.integers(0, 1 << 22, n),),
    ),
    Case(
        "grid_sample, bilinear",
        lambda x, g: functional.grid_sample(x, g, align_corners=False),
        lambda d, n: (d.normal(2, 16, 128, 128), d.uniform(-1.1, 1.1, 2, *rows(n // 32, 64), 2)),
        gradient=True,
    ),
    Case(
        "grid_sample, bicubic",
        lambda x, g: functional.grid_sample(x, g, "bicubic", align_corners=False),
        lambda d, n: (d.normal(2, 16, 128, 128), d.uniform(-1.1, 1.1, 2, *rows(n // 32, 64), 2)),
    ),
    Case(
        "grid_sample, nearest",
        lambda x, g: functional.grid_sample(x, g, "nearest", align_corners=False),
        lambda d, n: (d.normal(2, 16, 128, 128), d.uniform(-1.1, 1.1, 2, *rows(n // 32, 64), 2)),
    ),
)
