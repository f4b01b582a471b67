"""Products of groups of matrices, as mixtures of experts have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from polyblocks_torch.decomp.registry import decomposition

aten = torch.ops.aten


def _group_of(offsets: Tensor, extent: int) -> Tensor:
    """The group that each of ``extent`` places is in; ``offsets[g]`` is where group g ends."""
    places = torch.arange(extent, dtype=offsets.dtype, device=offsets.device)
    return torch.searchsorted(offsets, places, right=True)


@decomposition(aten._grouped_mm.default)
def grouped_mm(
    a: Tensor,
    b: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """One product per group.

    Args:
        a: [M, K], rows in groups, or [G, M, K].
        b: [K, N], or [G, K, N].
        offs: [G], where the groups of what has two dimensions end: rows of ``a``, columns of ``b``,
            or, where both have two, what they are summed over.

    Returns:
        [M, N], or [G, M, N] where both or none of ``a`` and ``b`` have three dimensions.
    """
    if bias is not None or out_dtype not in (None, a.dtype):
        return NotImplemented
    if a.dim() == b.dim() == 3:
        return torch.bmm(a, b)
    assert offs is not None
    count = offs.shape[0]
    groups = torch.arange(count, dtype=torch.int64, device=a.device)
    extent = a.shape[1] if a.dim() == b.dim() else (a.shape[0] if a.dim() == 2 else b.shape[1])
    member = _group_of(offs, extent) == groups[:, None]
    zero = torch.zeros((), dtype=a.dtype, device=a.device)
    if a.dim() == b.dim():
        # Both: an infinity of another group times zero would be no number.
        return torch.bmm(
            torch.where(member[:, None, :], a, zero), torch.where(member[:, :, None], b, zero)
        )
    # Every group multiplies all rows; only its own ones are used.
    if a.dim() == 2:
        products = torch.bmm(a.expand(count, *a.shape), b)
        return torch.where(member[:, :, None], products, zero).sum(0)
    products = torch.bmm(a, b.expand(count, *b.shape))
    return torch.where(member[:, None, :], products, zero).sum(0)


def grouped_rows(rows: Tensor, weight: Tensor, offs: Tensor) -> Tensor:
    """``transformers::grouped_mm_fallback``: [S, K] times [G, K, N] gives [S, N]."""
    return grouped_mm(rows, weight, offs)


def grouped_rows_backward(
    rows: Tensor, weight: Tensor, offs: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor]:
    """``transformers::grouped_mm_fallback_backward``: gradients of rows and weights."""
    return grouped_mm(grad, weight.transpose(1, 2), offs), grouped_mm(rows.t(), grad, offs)


#: Ops that packages register when they are imported, by namespace and name.
OF_PACKAGES: dict[tuple[str, str], Callable[..., Any]] = {
    ("transformers", "grouped_mm_fallback"): grouped_rows,
    ("transformers", "grouped_mm_fallback_backward"): grouped_rows_backward,
}
