"""Scaled dot-product attention and its gradients, as the contractions and sums that they are.

PyTorch's own decomposition of the CPU's operation gives the weights in the place of the logarithms
that the gradients start from, and there is none of the gradients. What eager mode computes in
(float32 for 16-bit operands) is kept until the end.

Queries of several heads may share one head of keys and values (grouped-query attention). Such heads
are neighbours, so that they are rows of one matrix: H heads of L rows are Hk of (H / Hk) * L.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch._prims_common import get_computation_dtype

from polyblocks_torch.decomp.registry import decomposition

aten = torch.ops.aten


def _rows(x: Tensor, heads: int, dtype: torch.dtype) -> Tensor:
    """[N, H, L, E] -> [N * heads, H / heads * L, E]."""
    batch, all_heads, length, width = x.shape
    return x.to(dtype).reshape(batch * heads, all_heads // heads * length, width)


def _scores(
    query: Tensor,
    key: Tensor,
    mask: Tensor | None,
    is_causal: bool,
    scale: float,
    shape: torch.Size,
) -> Tensor:
    """Scaled, masked products of rows of queries and keys, as ``shape`` = [N, H, L, S]."""
    scores = torch.bmm(query * scale, key.transpose(1, 2)).reshape(shape)
    if mask is not None:
        scores = scores + mask.to(scores.dtype)
    if is_causal:
        row = torch.arange(shape[2], device=query.device).unsqueeze(-1)
        column = torch.arange(shape[3], device=query.device)
        scores = torch.where(column <= row, scores, -math.inf)
    return scores


def _scale(query: Tensor, scale: float | None) -> float:
    return 1 / math.sqrt(query.shape[-1]) if scale is None else scale


@decomposition(aten._scaled_dot_product_flash_attention_for_cpu.default)
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Output [N, H, L, E] and, for the gradients, logsumexp of the scores [N, H, L].

    Args:
        query: [N, H, L, E].
        key, value: [N, Hk, S, E]; H is a multiple of Hk.
        dropout_p: 0; PyTorch draws where it drops, with other operations.
        is_causal: whether row i sees columns 0..i only.
        attn_mask: added to the scores; of any shape that broadcasts to [N, H, L, S].
        scale: of the scores; None: 1 / sqrt(E).
    """
    dtype, heads = get_computation_dtype(query.dtype), key.shape[1]
    shape = torch.Size((*query.shape[:3], key.shape[2]))
    q, k, v = (_rows(x, heads, dtype) for x in (query, key, value))
    scores = _scores(q, k, attn_mask, is_causal, _scale(query, scale), shape)
    largest = scores.amax(-1, keepdim=True)
    # A row of which nothing is seen gives zeros, and 0 as its logarithm.
    largest = torch.where(largest == -math.inf, 0.0, largest)
    weights = torch.exp(scores - largest)
    total = weights.sum(-1, keepdim=True)
    total = torch.where(total == 0, 1.0, total)
    output = torch.bmm(weights.reshape(*q.shape[:2], shape[3]), v).reshape(query.shape) / total
    return output.to(query.dtype), (largest + total.log()).squeeze(-1)


@decomposition(aten._scaled_dot_product_flash_attention_for_cpu_backward.default)
def attention_backward(
    grad_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of query, key and value from that of the output; shapes as in :func:`attention`.

    The weights are computed again from ``logsumexp`` (Dao et al., FlashAttention, 2022, appendix
    B.2): what they took part in is linear in the output, so one sum per row, of ``out`` and its
    gradient, stands for the normalization.
    """
    dtype, heads = get_computation_dtype(query.dtype), key.shape[1]
    shape = torch.Size((*query.shape[:3], key.shape[2]))
    scale = _scale(query, scale)
    q, k, v, grad = (_rows(x, heads, dtype) for x in (query, key, value, grad_out))
    scores = _scores(q, k, attn_mask, is_causal, scale, shape)
    weights = torch.exp(scores - logsumexp.unsqueeze(-1))
    grad_weights = torch.bmm(grad, v.transpose(1, 2)).reshape(shape)
    share = (grad_out.to(dtype) * out.to(dtype)).sum(-1, keepdim=True)
    matrix = (*q.shape[:2], shape[3])
    grad_scores = (weights * (grad_weights - share)).reshape(matrix)
    grad_query = torch.bmm(grad_scores, k) * scale
    grad_key = torch.bmm(grad_scores.transpose(1, 2), q) * scale
    grad_value = torch.bmm(weights.reshape(matrix).transpose(1, 2), grad)
    return (
        grad_query.reshape(query.shape).to(query.dtype),
        grad_key.reshape(key.shape).to(key.dtype),
        grad_value.reshape(value.shape).to(value.dtype),
    )
