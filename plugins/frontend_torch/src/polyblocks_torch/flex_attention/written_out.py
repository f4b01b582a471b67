"""Flex attention and its gradients, as the contractions, sums and elementwise operations they are.

As :mod:`polyblocks_torch.decomp.attention`, whose numbers this has where scores are not modified:
scores are float32 where operands have 16 bits, and products of 16 bits have factors of 16 bits. The
logarithms are to the base 2, as PyTorch's kernels have them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, fx

from polyblocks_torch.control_flow.operators import kind_of
from polyblocks_torch.decomp.attention import (
    OWN_ROWS,
    joined_rows,
    repeated_heads,
    scaled_product,
    widened,
)
from polyblocks_torch.flex_attention.operators import BACKWARD, FORWARD
from polyblocks_torch.flex_attention.places import Places
from polyblocks_torch.importing.opmath import converted, wide_product

aten = torch.ops.aten


def written_out(node: fx.Node) -> Callable[..., Any]:
    """The function that an operator is, with results of the types that PyTorch says."""
    function = _FUNCTIONS[kind_of(node)]

    def typed(*args: Any, **kwargs: Any) -> Any:
        results, said = function(*args, **kwargs), node.meta["val"]
        return tuple(
            converted(r, v.dtype) if isinstance(r, Tensor) and isinstance(v, Tensor) else r
            for r, v in zip(results, said, strict=True)
        )

    return typed


class _Scores(NamedTuple):
    """Scores [B, H, L, S] with their operands.

    Attributes:
        query, key, value: [B * heads, rows, E]: matrices that share keys are rows of one.
        plain: scaled products.
        modified: those after the functions of scores and masks.
        kept: which scores count; broadcasts to them.
        places: theirs.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    plain: Tensor
    modified: Tensor
    kept: Tensor
    places: Places


def _scores(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: fx.GraphModule,
    mask_mod: fx.GraphModule,
    scale: float,
    of_scores: Sequence[Any],
    of_masks: Sequence[Any],
) -> _Scores:
    shape = torch.Size((*query.shape[:3], key.shape[2]))
    q, k, v = (joined_rows(x, key.shape[1]) for x in (query, key, value))
    plain = scaled_product(q, k.transpose(1, 2), scale).reshape(shape)
    places = Places(shape, query.device)
    modified = places.modified(score_mod, plain, of_scores)
    kept = places.masked(mask_mod, of_masks)
    modified = torch.where(kept, modified, -math.inf).expand(shape)
    return _Scores(q, k, v, plain, modified, kept, places)


def _of_each_batch(query: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
    """Keys and values, which all batches may share, for each batch; nothing is copied."""
    return tuple(x.expand(query.shape[0], *x.shape[1:]) for x in tensors)


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: fx.GraphModule,
    block_mask: tuple[Any, ...],
    scale: float,
    kernel_options: dict[str, Any],
    of_scores: tuple[Any, ...] = (),
    of_masks: tuple[Any, ...] = (),
) -> tuple[Tensor, Tensor, Tensor]:
    """Output [B, H, L, Ev], and of each row [B, H, L] log2 of the sum of exponentials, and maximum.

    Args:
        query: [B, H, L, E].
        key, value: [B or 1, Hk, S, E] and [B or 1, Hk, S, Ev]; H is a multiple of Hk.
        score_mod: of score, batch, head, query, key and ``of_scores``: the score instead.
        block_mask: its last element is a function of the four numbers and ``of_masks``: whether a
            score counts. A row in which none does gives zeros, and minus infinity twice.
        scale: of the products.
        kernel_options: of PyTorch's kernels; without effect.
        of_scores, of_masks: values that the functions have captured.
    """
    key, value = _of_each_batch(query, key, value)
    if query.shape[2] >= OWN_ROWS:
        key, value = (repeated_heads(x, query.shape[1]) for x in (key, value))
    mods = score_mod, block_mask[-1]
    s = _scores(query, key, value, *mods, scale, of_scores, of_masks)
    largest = s.modified.amax(-1, keepdim=True)
    # Of a row without keys, and of one with an infinite score, whose sum is infinite then.
    finite = torch.where(largest.abs() == math.inf, 0.0, largest)
    weights = torch.exp(s.modified - finite)
    factors = converted(weights, value.dtype).reshape(*s.query.shape[:2], key.shape[2])
    total = weights.sum(-1, keepdim=True)
    output = wide_product(aten.bmm, factors, s.value).reshape(*query.shape[:3], value.shape[3])
    output = output / torch.where(total == 0, 1.0, total)
    log2 = 1 / math.log(2)
    sums = (finite + total.log()) * log2
    return output, sums.squeeze(-1), largest.squeeze(-1) * log2


def attention_backward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    grad_out: Tensor | None,
    grad_logsumexp: Tensor | None,
    score_mod: fx.GraphModule,
    joint: fx.GraphModule,
    block_mask: tuple[Any, ...],
    scale: float,
    kernel_options: dict[str, Any],
    of_scores: tuple[Any, ...] = (),
    of_masks: tuple[Any, ...] = (),
) -> tuple[Any, ...]:
    """Gradients of query, key, value and of the tensors that the function of scores captured.

    Args:
        out, logsumexp: results of :func:`attention`.
        grad_out, grad_logsumexp: their gradients; None for zeros.
        joint: the derivative of ``score_mod``; see :meth:`Places.gradients`.
    """
    dtype, shared = query.dtype, key.shape[0] < query.shape[0]
    batch_key, batch_value = _of_each_batch(query, key, value)
    mods = score_mod, block_mask[-1]
    s = _scores(query, batch_key, batch_value, *mods, scale, of_scores, of_masks)
    shape = s.plain.shape
    if dtype is torch.float64:
        # PyTorch's graphs hold the logarithms in float32.
        logsumexp = torch.logsumexp(s.modified, -1) / math.log(2)
    sums = torch.where(logsumexp == -math.inf, 0.0, logsumexp * math.log(2)).unsqueeze(-1)
    weights = torch.exp(s.modified - sums)
    grad_rows = 0.0 if grad_logsumexp is None else grad_logsumexp.unsqueeze(-1) / math.log(2)
    matrix = (*s.query.shape[:2], shape[3])
    grad_value = torch.zeros_like(batch_value)
    if grad_out is None:
        grad_modified = (weights * grad_rows).expand(shape)
    else:
        grad = joined_rows(grad_out, key.shape[1])
        grad_weights = wide_product(aten.bmm, grad, s.value.transpose(1, 2)).reshape(shape)
        share = (widened(grad_out) * widened(out)).sum(-1, keepdim=True)
        grad_modified = weights * (grad_weights - (share - grad_rows))
        factors = converted(weights, dtype).reshape(matrix)
        grad_value = wide_product(aten.bmm, factors.transpose(1, 2), grad)
        grad_value = grad_value.reshape(batch_value.shape)
    grad_plain, captured = s.places.gradients(joint, s.plain, grad_modified, of_scores)
    grad_plain = torch.where(s.kept, grad_plain, 0.0).expand(shape)
    grad_scores = converted(grad_plain, dtype).reshape(matrix)
    grad_query = wide_product(aten.bmm, grad_scores, s.key) * scale
    grad_key = wide_product(aten.bmm, grad_scores.transpose(1, 2), s.query) * scale
    grad_key = grad_key.reshape(batch_key.shape)
    if shared:
        grad_key, grad_value = (g.sum(0, keepdim=True) for g in (grad_key, grad_value))
    return grad_query.reshape(query.shape), grad_key, grad_value, tuple(captured)


_FUNCTIONS: dict[str, Callable[..., Any]] = {FORWARD: attention, BACKWARD: attention_backward}
