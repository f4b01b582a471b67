"""The rewrites, in order."""

from __future__ import annotations

import torch

from polyblocks_torch.rewrites.complex_pairs import expand_complex
from polyblocks_torch.rewrites.constants import fold_constants
from polyblocks_torch.rewrites.empty_tensors import fold_empty_tensors
from polyblocks_torch.rewrites.float_scalars import round_numbers
from polyblocks_torch.rewrites.padded_inputs import join_padded_inputs
from polyblocks_torch.rewrites.positive_dims import count_dims_from_front
from polyblocks_torch.rewrites.wide_bytes import widen_bytes


def rewrite_graph(gm: torch.fx.GraphModule) -> None:
    """Rewrite a graph in place so that torch-mlir lowers it rightly.

    Raises:
        UnsupportedError: the graph holds a form that cannot be rewritten.
    """
    # First: torch-mlir divides by extents, so nothing else may see a tensor without elements.
    fold_empty_tensors(gm.graph)
    fold_constants(gm.graph)
    expand_complex(gm)
    widen_bytes(gm)
    count_dims_from_front(gm.graph)
    round_numbers(gm.graph)
    join_padded_inputs(gm.graph)
    gm.graph.eliminate_dead_code()
