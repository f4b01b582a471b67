"""In-place updates of tensors whose elements overlap in memory.

Eager mode updates the memory, so that a sliding window shows what is stored through its neighbour.
AOTAutograd takes such a tensor for one whose elements are apart.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

from torch import fx
from torch.utils import _pytree as pytree

from polyblocks_torch.arguments.overlaps import share_places
from polyblocks_torch.specs import memory_key

#: Python's functions for augmented assignments (``x += y``) and for ``x[i] = y``.
_OPERATORS = frozenset(
    {
        operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv,
        operator.imod, operator.ipow, operator.imatmul, operator.iand, operator.ior, operator.ixor,
        operator.ilshift, operator.irshift, operator.setitem,
    }
)  # fmt: skip


def overlapping_update(gm: fx.GraphModule) -> fx.Node | None:
    """A node of Dynamo that updates a tensor with overlaps, or a view of one."""
    for node in gm.graph.nodes:
        if any(_has_overlaps(view) for written in updated_by(node) for view in _views(written)):
            return node
    return None


def updated_by(node: fx.Node) -> Iterator[fx.Node]:
    """The nodes that a node of Dynamo updates."""
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    in_place = node.target in _OPERATORS or node.kwargs.get("inplace") is True
    if node.op in ("call_function", "call_method") and (
        in_place or (name.endswith("_") and not name.endswith("__"))
    ):
        yield from node.all_input_nodes[:1]
    yield from (n for n in pytree.tree_leaves(node.kwargs.get("out")) if isinstance(n, fx.Node))


def _views(node: fx.Node) -> Iterator[fx.Node]:
    """A node, what that is a view of, and so on."""
    key = memory_key(node.meta.get("example_value"))
    while True:
        yield node
        same = [n for n in node.all_input_nodes if memory_key(n.meta.get("example_value")) == key]
        if key is None or not same:
            return
        node = same[0]


def _has_overlaps(node: fx.Node) -> bool:
    value: Any = node.meta.get("example_value")
    return (
        memory_key(value) is not None
        and not value._has_symbolic_sizes_strides
        and share_places(value.shape, value.stride())
    )
