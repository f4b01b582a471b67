"""The rewrites, in order."""

from __future__ import annotations

import torch
from torch.utils import _pytree as pytree

from polyblocks_torch.graphs import drop_unused
from polyblocks_torch.importing.opmath import NARROW
from polyblocks_torch.rewrites.complex_pairs import expand_complex
from polyblocks_torch.rewrites.constants import fold_constants
from polyblocks_torch.rewrites.empty_tensors import fold_empty_tensors
from polyblocks_torch.rewrites.exact_roundings import round_what_is_compared
from polyblocks_torch.rewrites.explicit_types import make_types_explicit
from polyblocks_torch.rewrites.index_puts import name_index_puts
from polyblocks_torch.rewrites.pool_positions import find_pool_positions
from polyblocks_torch.rewrites.positive_dims import count_dims_from_front


def rewrite_graph(gm: torch.fx.GraphModule) -> None:
    """Rewrite a graph in place so that torch-mlir lowers it rightly.

    Raises:
        UnsupportedError: the graph holds a form that cannot be rewritten.
    """
    values = _values(gm.graph)
    dtypes = {value.dtype for value in values}
    name_index_puts(gm.graph)
    # First: torch-mlir divides by extents, so nothing else may see a tensor without elements.
    if any(0 in value.shape for value in values):
        fold_empty_tensors(gm.graph)
    fold_constants(gm.graph)
    find_pool_positions(gm)
    if any(dtype.is_complex for dtype in dtypes):
        expand_complex(gm)
    if not NARROW.isdisjoint(dtypes):
        round_what_is_compared(gm.graph)
    make_types_explicit(gm)
    count_dims_from_front(gm.graph)
    drop_unused(gm.graph)


def _values(graph: torch.fx.Graph) -> list[torch.Tensor]:
    """All tensors that the nodes of a graph have for their values."""
    found: list[torch.Tensor] = []
    for node in graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif value is not None:
            found += [v for v in pytree.tree_leaves(value) if isinstance(v, torch.Tensor)]
    return found
