"""Join what transposed convolutions read to its padding.

torch-mlir puts a padded input between zeros, as a stride above 1 wants it, at the wrong places: it
adds the padding in front to where the input goes, as if no zeros came between its elements.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

_aten = torch.ops.aten


def join_padded_inputs(graph: fx.Graph) -> None:
    """Let the padded inputs of strided transposed convolutions be concatenations, in place."""
    for node in list(graph.nodes):
        if node.target is not _aten.convolution.default:
            continue
        arguments: tuple[Any, ...] = node.args
        source, _, _, stride, _, _, transposed = arguments[:7]
        if not transposed or all(step == 1 for step in stride):
            continue
        if isinstance(source, fx.Node) and source.target is _aten.constant_pad_nd.default:
            with graph.inserting_before(node):
                node.update_arg(0, _joined(graph, source))


def _joined(graph: fx.Graph, pad: fx.Node) -> fx.Node:
    """What ``constant_pad_nd`` gives."""
    arguments: tuple[Any, ...] = (*pad.args, 0)
    found, widths, value = arguments[:3]

    def emit(target: Any, *args: Any) -> fx.Node:
        node = graph.call_function(target, args)
        operands = pytree.tree_map_only(fx.Node, lambda n: n.meta["val"], args)
        node.meta = {**pad.meta, "val": target(*operands)}
        return node

    def filled(like: fx.Node, dim: int, width: int) -> fx.Node:
        shape = list(like.meta["val"].shape)
        shape[dim] = width
        return emit(_aten.new_full.default, like, shape, value)

    rank = found.meta["val"].dim()
    for number in range(len(widths) // 2):
        dim = rank - 1 - number
        front, behind = widths[2 * number : 2 * number + 2]
        if front < 0 or behind < 0:
            extent = found.meta["val"].shape[dim]
            found = emit(_aten.slice.Tensor, found, dim, max(0, -front), extent + min(0, behind))
        parts = [found]
        if front > 0:
            parts.insert(0, filled(found, dim, front))
        if behind > 0:
            parts.append(filled(found, dim, behind))
        if len(parts) > 1:
            found = emit(_aten.cat.default, parts, dim)
    return found
