"""Fold what is constant with PyTorch, which rounds, wraps around and divides as eager mode does."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.utils import _pytree as pytree

from polyblocks_torch.importing.refusals import RANDOM_OPS

aten = torch.ops.aten

#: Larger tensors are computed where they are needed.
LARGEST = 1024

_LEAVES = frozenset(
    {aten.full.default, aten.scalar_tensor.default, aten.zeros.default, aten.ones.default}
)


def fold_constants(graph: fx.Graph) -> None:
    """Replace, in place, each node computed from uniform constants alone by a constant.

    Only results whose elements are all equal are replaced.
    """
    known: dict[fx.Node, torch.Tensor] = {}
    # Evaluated when all operands of a node that reads them are such constants: most are not.
    leaves: set[fx.Node] = set()
    for node in list(graph.nodes):
        if node.target in _LEAVES:
            leaves.add(node)
            continue
        operands = node.all_input_nodes
        if not operands or not all(n in known or n in leaves for n in operands):
            continue
        if not _foldable(node, node.meta.get("val")):
            continue
        for leaf in leaves.intersection(operands):
            leaves.discard(leaf)
            _learn(leaf, known)
        if not all(n in known for n in operands) or not _learn(node, known):
            continue
        result = known.pop(node)
        with graph.inserting_before(node):
            item = result.flatten()[0].item()
            new = graph.call_function(
                aten.full.default, (list(result.shape), item), {"dtype": result.dtype}
            )
        new.meta = dict(node.meta)
        node.replace_all_uses_with(new)
        graph.erase_node(node)
        known[new] = result


def _learn(node: fx.Node, known: dict[fx.Node, torch.Tensor]) -> bool:
    """Whether a node whose operands are known is a uniform constant, too, and known now."""
    if not _foldable(node, node.meta.get("val")):
        return False
    result = _evaluate(node, known)
    if result is None or not _is_uniform(result):
        return False
    known[node] = result
    return True


def _foldable(node: fx.Node, value: Any) -> bool:
    if node.op != "call_function" or not isinstance(value, torch.Tensor):
        return False
    packet = getattr(node.target, "overloadpacket", None)
    if packet is None or packet.__name__ in RANDOM_OPS or packet.__name__.startswith("empty"):
        return False
    return value.layout == torch.strided and 0 < value.numel() <= LARGEST and not value.is_complex()


def _evaluate(node: fx.Node, known: dict[fx.Node, torch.Tensor]) -> torch.Tensor | None:
    args, kwargs = pytree.tree_map_only(fx.Node, known.__getitem__, (node.args, node.kwargs))
    with unset_fake_temporarily():
        try:
            result = node.target(*args, **kwargs)  # type: ignore[operator]
        except (RuntimeError, TypeError, ValueError):
            return None
    value = node.meta["val"]
    if not isinstance(result, torch.Tensor):
        return None
    return result if (result.shape, result.dtype) == (value.shape, value.dtype) else None


def _is_uniform(value: torch.Tensor) -> bool:
    """Whether all elements are equal, and finite so that the number can be written down."""
    with unset_fake_temporarily():
        first = value.flatten()[:1]
        return bool((value == first).all()) and bool(first.isfinite().all())
