"""Scaled dot-product attention and its gradients, as the contractions and sums that they are.

PyTorch's own decomposition of the CPU's operation returns the weights instead of the logarithms
that the gradients start from, and the gradients have no decomposition. As in eager mode, products
of 16 bits have factors of 16 bits, weights included, and sums in float32, which everything else is
computed in; so units that multiply such numbers can be used.

Queries of several heads may share one head of keys and values (grouped-query attention). Such heads
are neighbours, so that they are rows of one matrix: H heads of L rows are Hk of (H / Hk) * L. Where
a head has rows enough by itself, each is a matrix, which reads the keys of its group.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from polyblocks_torch.decomp.registry import decomposition
from polyblocks_torch.importing.opmath import NARROW, converted, wide_product

aten = torch.ops.aten

#: Queries from which on a head is a product of its own; fewer share what they read of the keys.
OWN_ROWS = 32


def joined_rows(x: Tensor, heads: int) -> Tensor:
    """[N, H, L, E] -> [N * heads, H / heads * L, E]."""
    batch, all_heads, length, width = x.shape
    return x.reshape(batch * heads, all_heads // heads * length, width)


def repeated_heads(x: Tensor, heads: int) -> Tensor:
    """[N, Hk, S, E] -> [N, heads, S, E], each head as often as it is shared; nothing is copied."""
    batch, own, length, width = x.shape
    if own == heads:
        return x
    wide = x.unsqueeze(2).expand(batch, own, heads // own, length, width)
    return wide.reshape(batch, heads, length, width)


def widened(x: Tensor) -> Tensor:
    """Numbers of 16 bits as float32, others as they are."""
    return converted(x, torch.float32) if x.dtype in NARROW else x


def scaled_product(a: Tensor, b: Tensor, scale: float) -> Tensor:
    """The scaled product of matrices; what is left out of 16 bits is not rounded to them."""
    if a.dtype in NARROW:
        return wide_product(aten.bmm, a, b) * scale
    return torch.bmm(a * scale, b)


def _scores(
    query: Tensor,
    key: Tensor,
    mask: Tensor | None,
    is_causal: bool,
    scale: float,
    shape: torch.Size,
) -> Tensor:
    """Scaled, masked products of rows of queries and keys, as ``shape`` = [N, H, L, S]."""
    scores = scaled_product(query, key.transpose(1, 2), scale).reshape(shape)
    if mask is not None:
        scores = scores + mask.to(scores.dtype)
    if is_causal:
        row = torch.arange(shape[2], device=query.device).unsqueeze(-1)
        column = torch.arange(shape[3], device=query.device)
        scores = torch.where(column <= row, scores, -math.inf)
    return scores


def _scale(query: Tensor, scale: float | None) -> float:
    return 1 / math.sqrt(query.shape[-1]) if scale is None else scale


@decomposition(aten._scaled_dot_product_flash_attention_for_cpu.default, rounds=True)
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
    if query.shape[2] >= OWN_ROWS:
        key, value = (repeated_heads(x, query.shape[1]) for x in (key, value))
    heads = key.shape[1]
    shape = torch.Size((*query.shape[:3], key.shape[2]))
    q, k, v = (joined_rows(x, heads) for x in (query, key, value))
    scores = _scores(q, k, attn_mask, is_causal, _scale(query, scale), shape)
    largest = scores.amax(-1, keepdim=True)
    # A fully masked row gives zeros, and 0 as its logarithm.
    largest = torch.where(largest == -math.inf, 0.0, largest)
    weights = torch.exp(scores - largest)
    factors = converted(weights, v.dtype).reshape(*q.shape[:2], shape[3])
    total = weights.sum(-1, keepdim=True)
    total = torch.where(total == 0, 1.0, total)
    output = wide_product(aten.bmm, factors, v).reshape(query.shape) / total
    return converted(output, query.dtype), (largest + total.log()).squeeze(-1)


@decomposition(aten._scaled_dot_product_flash_attention_for_cpu_backward.default, rounds=True)
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
    dtype, heads = query.dtype, key.shape[1]
    shape = torch.Size((*query.shape[:3], key.shape[2]))
    scale = _scale(query, scale)
    q, k, v, grad = (joined_rows(x, heads) for x in (query, key, value, grad_out))
    scores = _scores(q, k, attn_mask, is_causal, scale, shape)
    weights = torch.exp(scores - logsumexp.unsqueeze(-1))
    grad_weights = wide_product(aten.bmm, grad, v.transpose(1, 2)).reshape(shape)
    share = (widened(grad_out) * widened(out)).sum(-1, keepdim=True)
    matrix = (*q.shape[:2], shape[3])
    grad_scores = converted(weights * (grad_weights - share), dtype).reshape(matrix)
    factors = converted(weights, dtype).reshape(matrix)
    grad_query = wide_product(aten.bmm, grad_scores, k) * scale
    grad_key = wide_product(aten.bmm, grad_scores.transpose(1, 2), q) * scale
    grad_value = wide_product(aten.bmm, factors.transpose(1, 2), grad)
    return (
        converted(grad_query.reshape(query.shape), dtype),
        converted(grad_key.reshape(key.shape), dtype),
        converted(grad_value.reshape(value.shape), dtype),
    )
