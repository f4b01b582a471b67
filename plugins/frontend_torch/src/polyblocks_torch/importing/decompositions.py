"""The decomposition table that AOTAutograd applies before a graph is lowered.

It is PyTorch's core-ATen table, some more of PyTorch's decompositions, and those of
:mod:`polyblocks_torch.decomp`. Contractions (mm, bmm, addmm, convolution) stay whole. Ops that draw
random numbers stay whole too, so that PyTorch's generator runs them and results equal eager's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import core_aten_decompositions, get_decompositions
from torch._ops import OperatorBase, OpOverloadPacket

from polyblocks_torch.decomp.every import REGISTRY
from polyblocks_torch.decomp.grouped_products import OF_PACKAGES
from polyblocks_torch.importing.refusals import RANDOM_OPS

aten = torch.ops.aten

#: Decompositions that PyTorch has outside of its core-ATen table. torch-mlir lacks these ops, or
#: rounds them differently than eager does (gelu).
_MORE: list[OperatorBase | OpOverloadPacket[..., Any]] = [
    aten._adaptive_avg_pool2d,
    aten._batch_norm_no_update,
    aten._batch_norm_with_update,
    aten._batch_norm_with_update_functional,
    aten._euclidean_dist,
    aten._log_softmax,
    aten._native_batch_norm_legit,
    aten._native_batch_norm_legit_functional,
    aten._native_batch_norm_legit_no_training,
    aten.addmv,
    aten.batch_norm_backward,
    aten.diag,
    aten.gelu,
    aten.grid_sampler_2d,
    aten.logsumexp,
    aten.native_batch_norm,
    aten.native_group_norm,
    aten.native_layer_norm,
    aten.squeeze.dims,
    aten.tril_indices,
    aten.triu_indices,
    aten.upsample_trilinear3d,
]


def decomposition_table() -> dict[Any, Callable[..., Any]]:
    """Op overload -> decomposition, for AOTAutograd and ``make_fx``."""
    table = _table()
    for (namespace, name), function in OF_PACKAGES.items():
        packet = getattr(getattr(torch.ops, namespace), name, None)
        if packet is not None:
            table[packet.default] = function
    return table


@functools.cache
def _table() -> dict[Any, Callable[..., Any]]:
    table = dict(core_aten_decompositions())
    table.update(get_decompositions(_MORE))
    for op in list(table):
        if getattr(op, "overloadpacket", op).__name__ in RANDOM_OPS:
            del table[op]
    table.update(REGISTRY)
    return table
