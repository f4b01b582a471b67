"""The decomposition table that AOTAutograd applies."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import core_aten_decompositions, get_decompositions

aten = torch.ops.aten

_MORE = [
    aten.native_group_norm, aten.upsample_bilinear2d.vec, aten.native_layer_norm,
    aten._native_batch_norm_legit_functional, aten._native_batch_norm_legit_no_training,
    aten._native_batch_norm_legit, aten._native_batch_norm_legit.no_stats,
    aten.squeeze.dims, aten._euclidean_dist, aten.grid_sampler_2d, aten._adaptive_avg_pool2d,
    aten.full, aten.logsumexp, aten._log_softmax, aten.diag,
    aten._scaled_dot_product_flash_attention_for_cpu, aten.scaled_dot_product_attention,
]

@functools.cache
def decomposition_table() -> dict[Any, Callable[..., Any]]:
    """Op overload -> decomposition."""
    table = dict(core_aten_decompositions())
    table.update(get_decompositions(_MORE))
    return table
