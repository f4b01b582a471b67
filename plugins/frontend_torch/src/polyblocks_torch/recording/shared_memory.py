"""Arrays of a graph that share memory: the base of each view, and which arrays have views."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from polyblocks.program import ArraySpec
from polyblocks_torch.arguments.overlaps import may_overlap
from polyblocks_torch.capture import ResultOutput, View
from polyblocks_torch.specs import is_dense, memory_key, problem_with, spec_of, storage_key


class Bases:
    """Results whose memory other outputs may view."""

    def __init__(self) -> None:
        self._by_storage: dict[int, list[tuple[torch.Tensor, ArraySpec, int]]] = {}

    def add(self, node: fx.Node, spec: ArraySpec, index: int) -> None:
        key = storage_key(node.meta["val"])
        if key is not None and is_dense(spec):
            self._by_storage.setdefault(key, []).append((node.meta["val"], spec, index))

    def find(self, node: fx.Node, spec: ArraySpec) -> ResultOutput | None:
        value = node.meta["val"]
        for base, base_spec, index in self._by_storage.get(memory_key(value) or -1, ()):
            view = relative_view(spec, value, base)
            if view is not None and is_inside(view, spec, base_spec):
                return ResultOutput(index, view)
        return None


def widest_first(item: tuple[int, fx.Node, ArraySpec]) -> tuple[int, bool, bool]:
    """Orders outputs so that bases precede their views.

    A view with gaps (every other element of three) may reach as far as its base.
    """
    _, node, spec = item
    return -spec.nbytes, not is_dense(spec), is_lazy(node.meta["val"])


def hidden_roots(pending: Sequence[tuple[int, fx.Node, ArraySpec]]) -> list[fx.Node]:
    """Bases of outputs that are no outputs themselves: of several, or of one with overlaps."""
    groups: dict[int, list[tuple[fx.Node, ArraySpec]]] = {}
    for _, node, spec in pending:
        key = memory_key(node.meta["val"])
        if key is not None:
            groups.setdefault(key, []).append((node, spec))
    roots = []
    for group in groups.values():
        root = view_root(group[0][0], memory_key)
        outputs = {node for node, _ in group}
        alone = len(outputs) < 2 and not may_overlap(group[0][1])
        if alone or root in outputs or root.op != "call_function":
            continue
        value = root.meta["val"]
        if problem_with(value) is not None or not is_dense(spec_of(value)) or is_lazy(value):
            continue
        whole = spec_of(value)
        views = [(relative_view(spec, node.meta["val"], value), spec) for node, spec in group]
        widest = max(
            (
                spec.nbytes
                for node, spec in group
                if is_dense(spec) and not is_lazy(node.meta["val"])
            ),
            default=0,
        )
        if widest < whole.nbytes and all(
            v is not None and is_inside(v, s, whole) for v, s in views
        ):
            roots.append(root)
    return roots


def view_root(node: fx.Node, key_of: Callable[[Any], int | None] = storage_key) -> fx.Node:
    """The node that a chain of views starts from, which are views if they have equal keys."""
    key = key_of(node.meta.get("val"))
    while key is not None and node.op != "placeholder":
        base: Any = node.meta.get("view_of")
        known = base is not None and base.graph is node.graph
        # Views that one operation gives together (split, unbind) are elements of its tuple.
        maker: Any = node.args[0] if node.target is operator.getitem else node
        inputs: list[fx.Node] = [base] if known else maker.all_input_nodes
        same = [n for n in inputs if key_of(n.meta.get("val")) == key]
        if not same:
            break
        node = same[0]
    return node


def is_one_of_several(node: fx.Node) -> bool:
    """Whether a view is an element of what one operation gives (split, unbind)."""
    return node.target is operator.getitem


def base_placeholder(node: fx.Node) -> fx.Node | None:
    """The argument that a chain of views starts from."""
    root = view_root(node)
    is_argument = root.op == "placeholder" and storage_key(node.meta.get("val")) is not None
    return root if is_argument else None


def relative_view(spec: ArraySpec, value: torch.Tensor, base: torch.Tensor) -> View | None:
    """The view that makes ``value`` of ``base``, which shares its memory."""
    if value.device != base.device:
        return None
    begin = value.storage_offset() * value.itemsize - base.storage_offset() * base.itemsize
    offset, rest = divmod(int(begin), value.itemsize)
    if offset < 0 or rest or (base.numel() * base.itemsize) % value.itemsize:
        return None
    dtype = None if value.dtype == base.dtype else spec.dtype
    conj, neg = value.is_conj() != base.is_conj(), value.is_neg() != base.is_neg()
    return View(spec.shape, spec.strides, offset, dtype, conj, neg)


def is_inside(view: View, spec: ArraySpec, base: ArraySpec) -> bool:
    itemsize = spec.nbytes // spec.span
    return view.offset * itemsize + spec.nbytes <= base.nbytes


def is_lazy(value: torch.Tensor) -> bool:
    return value.is_conj() or value.is_neg()
