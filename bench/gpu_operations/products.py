"""Operations of products that PyTorch's counter does not know, a multiply-add as two."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import torch

from bench.gpu_operations.eliminations import ELIMINATIONS

aten = torch.ops.aten
Shape = tuple[int, ...]


def _attention(query: Shape, key: Shape, value: Shape, *rest: Any, **_: Any) -> int:
    """``query`` x ``key``, and its result x ``value``; half of both where keys come later."""
    causal = len(rest) > 1 and bool(rest[1])
    pairs = prod(query[:-1]) * key[-2]
    return 2 * pairs * (query[-1] + value[-1]) // (2 if causal else 1)


def _attention_gradients(
    gradient: Shape, query: Shape, key: Shape, value: Shape, *rest: Any, **_: Any
) -> int:
    """Scores once more, and four products for the gradients: 5 where attention has 2."""
    del gradient
    causal = len(rest) > 3 and bool(rest[3])
    return _attention(query, key, value, 0.0, causal) * 5 // 2


def _distances(left: Shape, right: Shape, *_: Any, **__: Any) -> int:
    """Of all pairs of rows: a subtraction and an addition per element, at least."""
    return 2 * prod(left[:-1]) * right[-2] * left[-1]


def _distances_inside(rows: Shape, *_: Any, **__: Any) -> int:
    """Of all pairs of different rows of one matrix."""
    return rows[0] * (rows[0] - 1) * rows[1]


def _bilinear(left: Shape, weights: Shape, right: Shape, *_: Any, **__: Any) -> int:
    """``left`` (N x I) times ``weights`` (O x I x J) times ``right`` (N x J), the shorter first."""
    return 2 * left[0] * prod(weights) + 2 * left[0] * weights[0] * right[-1]


def _counted(formula: Callable[..., int]) -> Callable[..., int]:
    """As the counter calls it: tensors as shapes, the results' shape in ``out_val``."""

    def called(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        del out_val
        shapes = (tuple(a.shape) if isinstance(a, torch.Tensor) else a for a in args)
        return formula(*shapes, **kwargs)

    called._get_raw = True  # type: ignore[attr-defined]
    return called


#: For ``FlopCounterMode``.
FORMULAS = {
    op: _counted(formula)
    for op, formula in {
        aten._scaled_dot_product_flash_attention_for_cpu: _attention,
        aten._scaled_dot_product_flash_attention_for_cpu_backward: _attention_gradients,
        aten._euclidean_dist: _distances,
        aten._cdist_forward: _distances,
        aten._pdist_forward: _distances_inside,
        aten._trilinear: _bilinear,
        **{op: formula for op, (formula, *_) in ELIMINATIONS.items()},
    }.items()
}
