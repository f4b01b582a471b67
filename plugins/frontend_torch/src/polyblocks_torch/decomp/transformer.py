"""The layer of a transformer's encoder that PyTorch has as one op, for inference."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from polyblocks_torch.decomp.registry import decomposition

aten = torch.ops.aten


def _seen(mask: Tensor, mask_type: int | None, heads: int) -> Tensor:
    """Where scores [N, H, L, S] count; the op takes every number but 0 for true, and that for no.

    Args:
        mask: [L, S] for type 0, [N, S] for type 1, [N, H, L, S] for type 2.
        mask_type: of the mask; None is 2, or 0 for a matrix.
        heads: H.
    """
    hidden = mask if mask.dtype == torch.bool else mask != 0
    if mask_type == 1:
        return ~hidden[:, None, None, :]
    if mask_type == 0 or hidden.dim() == 2:
        return ~hidden[None, None]
    return ~hidden.reshape(-1, heads, *hidden.shape[-2:])


@decomposition(aten._transformer_encoder_layer_fwd.default)
def encoder_layer(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    """[N, L, E] to [N, L, E]: attention and two products, each with a sum and a norm."""
    width = [embed_dim]

    def attend(x: Tensor) -> Tensor:
        qkv = F.linear(x, qkv_weight, qkv_bias)
        rows, length = x.shape[:2]
        parts = qkv.reshape(rows, length, 3, num_heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        query, key, value = parts
        scores = (query / math.sqrt(query.shape[-1])) @ key.transpose(-2, -1)
        if mask is not None:
            scores = torch.where(_seen(mask, mask_type, num_heads), scores, -math.inf)
        weights = torch.softmax(scores, -1)
        joined = (weights @ value).transpose(1, 2).reshape(rows, length, embed_dim)
        return F.linear(joined, proj_weight, proj_bias)

    def feed_forward(x: Tensor) -> Tensor:
        inner = F.linear(x, ffn_weight_1, ffn_bias_1)
        return F.linear(F.gelu(inner) if use_gelu else F.relu(inner), ffn_weight_2, ffn_bias_2)

    if norm_first:
        x = src + attend(F.layer_norm(src, width, norm_weight_1, norm_bias_1, eps))
        return x + feed_forward(F.layer_norm(x, width, norm_weight_2, norm_bias_2, eps))
    x = F.layer_norm(src + attend(src), width, norm_weight_1, norm_bias_1, eps)
    return F.layer_norm(x + feed_forward(x), width, norm_weight_2, norm_bias_2, eps)
