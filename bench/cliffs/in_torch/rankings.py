"""Sorting, selection, and running sums and extrema."""

from __future__ import annotations

import torch

from bench.cliffs.case import Case, rows


def _wide(width: int):
    return lambda draw, n: (draw.normal(*rows(n, width)),)


def _flat(draw, n):
    return (draw.normal(n),)


def _top_p(logits: torch.Tensor) -> torch.Tensor:
    ordered, order = torch.sort(logits, descending=True)
    kept = ordered.softmax(-1).cumsum(-1) - ordered.softmax(-1) < 0.9
    masked = ordered.masked_fill(~kept, -torch.inf)
    return torch.empty_like(logits).scatter(-1, order, masked)


CASES = (
    Case("sort, all", torch.sort, _flat, choosing=True),
    Case("sort, rows of 64", torch.sort, _wide(64), choosing=True),
    Case("sort, rows of 1024", torch.sort, _wide(1024), choosing=True),
    Case(
        "sort, rows of 8192, descending",
        lambda x: x.sort(descending=True),
        _wide(8192),
        choosing=True,
    ),
    Case("sort, columns", lambda x: x.sort(0), _wide(1024), choosing=True),
    Case(
        "sort of integers, rows of 1024",
        torch.sort,
        lambda d, n: (d.integers(0, 1 << 20, *rows(n, 1024)),),
        choosing=True,
    ),
    Case("argsort, stable", lambda x: torch.argsort(x, stable=True), _wide(1024)),
    Case("msort", torch.msort, _wide(1024)),
    Case("topk 1 of 8192", lambda x: x.topk(1), _wide(8192)),
    Case("topk 8 of 8192", lambda x: x.topk(8), _wide(8192), gradient=True),
    Case("topk 50 of 50257", lambda x: x.topk(50), _wide(50257)),
    Case("topk 100, all", lambda x: x.topk(100), _flat),
    Case("topk 2 of 8", lambda x: x.softmax(-1).topk(2), _wide(8)),
    Case("kthvalue 100 of 1024", lambda x: x.kthvalue(100), _wide(1024), choosing=True),
    Case("median of 1024", lambda x: x.median(-1), _wide(1024), choosing=True),
    Case("nanmedian of 1024", lambda x: x.nanmedian(-1), _wide(1024), choosing=True),
    Case("median of 9", lambda x: x.median(-1), _wide(9), choosing=True),
    Case("quantile of 1024", lambda x: x.quantile(0.3, -1), _wide(1024)),
    Case(
        "mode of 64",
        lambda x: x.mode(-1),
        lambda d, n: (d.integers(0, 9, *rows(n, 64)),),
        choosing=True,
    ),
    Case("top-p of 50257", _top_p, _wide(50257)),
    Case(
        "searchsorted",
        lambda edges, x: torch.searchsorted(edges.cumsum(0), x),
        lambda d, n: (d.uniform(0.1, 1, 1 << 12), d.uniform(0, 2000, n)),
    ),
    Case(
        "bucketize",
        lambda edges, x: torch.bucketize(x, edges.cumsum(0)),
        lambda d, n: (d.uniform(0.1, 1, 64), d.uniform(0, 40, n)),
    ),
    Case(
        "isin",
        torch.isin,
        lambda d, n: (d.integers(0, 1 << 20, n), d.integers(0, 1 << 20, 1 << 10)),
    ),
    Case("cumsum, rows", lambda x: x.cumsum(-1), _wide(1024), gradient=True),
    Case("cumsum, columns", lambda x: x.cumsum(0), _wide(1024)),
    Case("cumsum, all", lambda x: x.cumsum(0), _flat),
    Case("cumprod, rows", lambda x: x.cumprod(-1), _wide(64)),
    Case("cummax, rows", lambda x: x.cummax(-1), _wide(1024), gradient=True),
    Case("cummin, columns", lambda x: x.cummin(0), _wide(1024)),
    Case("logcumsumexp, rows", lambda x: x.logcumsumexp(-1), _wide(1024), gradient=True),
    Case("diff", torch.diff, _wide(1024), gradient=True),
    Case("trapezoid", torch.trapezoid, _wide(1024)),
    Case("cumulative_trapezoid", torch.cumulative_trapezoid, _wide(1024)),
    Case("aminmax", torch.aminmax, _flat),
    Case("max with positions, rows", lambda x: x.max(-1), _wide(1024), gradient=True),
    Case("max with positions, columns", lambda x: x.max(0), _wide(1024)),
    Case("std_mean, rows", lambda x: torch.std_mean(x, -1), _wide(1024), gradient=True),
    Case("var_mean, all", torch.var_mean, _flat),
    Case("logsumexp, rows", lambda x: x.logsumexp(-1), _wide(1024), gradient=True),
    Case("softmax, rows of 64", lambda x: x.softmax(-1), _wide(64), gradient=True),
    Case("softmax, rows of 50257", lambda x: x.softmax(-1), _wide(50257), gradient=True),
    Case("softmax, columns", lambda x: x.softmax(0), _wide(1024), gradient=True),
    Case("log_softmax, rows", lambda x: x.log_softmax(-1), _wide(1024), gradient=True),
    Case("softmin, rows", lambda x: torch.nn.functional.softmin(x, -1), _wide(1024)),
    Case("norm of rows", lambda x: torch.linalg.norm(x, dim=-1), _wide(1024), gradient=True),
    Case("norm inf", lambda x: x.norm(torch.inf), _flat),
    Case("normalize", torch.nn.functional.normalize, _wide(256), gradient=True),
    Case("renorm", lambda x: x.renorm(2, 0, 1.0), _wide(256)),
)
