"""How a compiled graph's outputs are made: computed, viewed, passed on, or left to PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Container

import torch
from torch import fx

from polyblocks.program import ArraySpec
from polyblocks_torch.arguments.overlaps import may_overlap, memory_of
from polyblocks_torch.capture import (
    EmptyOutput,
    InputOutput,
    LiteralOutput,
    OpaqueOutput,
    Output,
    ResultOutput,
    View,
)
from polyblocks_torch.recording.graph_editor import GraphEditor
from polyblocks_torch.recording.shared_memory import (
    Bases,
    base_placeholder,
    hidden_roots,
    is_one_of_several,
    relative_view,
    widest_first,
)
from polyblocks_torch.specs import spec_of

aten = torch.ops.aten


class OutputPlanner:
    """Decides how each output of a graph is made.

    Args:
        editor: the graph, without its updates; nodes are added to it.
        spec_of_node: what a node's array looks like; None for what a program cannot compute.
        constants: arguments that the caller does not pass.

    Attributes:
        results: node, array, and the position of the argument that it replaces, if any, for each
            result that the program computes.
        opaque: nodes whose values PyTorch computes.
    """

    def __init__(
        self,
        editor: GraphEditor,
        spec_of_node: Callable[[fx.Node], ArraySpec | None],
        constants: Container[fx.Node],
    ) -> None:
        self._editor, self._spec_of, self._constants = editor, spec_of_node, constants
        self.results: list[tuple[fx.Node, ArraySpec, int | None]] = []
        self.opaque: list[fx.Node] = []

    def plan(self, updates: dict[int, fx.Node]) -> list[Output]:
        """How each output of the caller is made; fills ``results`` and ``opaque``.

        Args:
            updates: position of an argument -> its new value.
        """
        nodes = self.results
        for argument, node in updates.items():
            target = self._editor.placeholders[argument]
            spec = self._spec_of(target)
            if spec is not None and spec.numel != 0 and node is not target:
                nodes.append((node, spec, argument))
        written = {position for _, _, position in nodes}
        index_of: dict[fx.Node, int] = {}
        bases = Bases()
        plan: list[Output | None] = []
        pending: list[tuple[int, fx.Node, ArraySpec]] = []
        for number, value in enumerate(self._editor.returned):
            plan.append(None)
            if not isinstance(value, fx.Node):
                plan[number] = LiteralOutput(value)
                continue
            if value in self._editor.position:
                plan[number] = InputOutput(self._editor.position[value])
                continue
            if value in self._constants or value.op == "get_attr":
                # The caller may write to what it gets.
                value = self._editor.call(aten.clone.default, value)
            spec = self._spec_of(value)
            if spec is None:
                plan[number] = OpaqueOutput(len(self.opaque))
                self.opaque.append(value)
                continue
            if spec.numel == 0:
                plan[number] = EmptyOutput(spec)
                continue
            aliased = self._view_of_argument(value, spec, written)
            if aliased is not None:
                plan[number] = aliased
                continue
            pending.append((number, value, spec))
        # The widest array of each group that shares memory is computed, the others are its views.
        for root in hidden_roots(pending):
            spec = spec_of(root.meta["val"])
            bases.add(root, spec, len(nodes))
            nodes.append((root, spec, None))
        for number, value, spec in sorted(pending, key=widest_first):
            if value in index_of:
                plan[number] = ResultOutput(index_of[value])
                continue
            view = bases.find(value, spec)
            if view is not None:
                plan[number] = view
                continue
            node, stored, expanded = self._without_overlap(value, spec)
            index = len(nodes)
            nodes.append((node, stored, None))
            plan[number] = ResultOutput(index, expanded)
            if expanded is None:
                index_of[value] = index
                bases.add(value, stored, index)
        return [p for p in plan if p is not None]

    def _view_of_argument(
        self, node: fx.Node, spec: ArraySpec, written: set[int | None]
    ) -> InputOutput | None:
        base = base_placeholder(node)
        if base is None or base not in self._editor.position:
            return None
        position = self._editor.position[base]
        if position in written:
            return None
        view = relative_view(spec, node.meta["val"], base.meta["val"])
        # AOTAutograd makes those that read it as another type, but for several views at once.
        made_later = view is not None and view.dtype is not None and not is_one_of_several(node)
        return None if view is None or made_later else InputOutput(position, view)

    def _without_overlap(
        self, node: fx.Node, spec: ArraySpec
    ) -> tuple[fx.Node, ArraySpec, View | None]:
        """The node to compute for an output so that no two elements overlap.

        An expanded output is computed once per place and then viewed. So is any other one with
        overlaps (sliding windows), if it is no view of something that can be computed instead.
        """
        repeated = [
            d
            for d, (n, s) in enumerate(zip(spec.shape, spec.strides, strict=True))
            if n > 1 and s == 0
        ]
        if repeated:
            for dim in repeated:
                node = self._editor.call(aten.slice.Tensor, node, dim, 0, 1)
            shape = tuple(1 if d in repeated else n for d, n in enumerate(spec.shape))
            single = ArraySpec(shape, spec.dtype, spec.strides)
            node, stored, view = self._without_overlap(node, single)
            laid = stored.strides if view is None else view.strides
            strides = tuple(0 if d in repeated else s for d, s in enumerate(laid))
            return node, stored, View(spec.shape, strides, 0)
        if may_overlap(spec):
            # Readers of a view rely on its strides: the backward graph does.
            memory = memory_of(node, self._editor.call, self._editor.constant)
            stored = ArraySpec.contiguous((spec.span,), spec.dtype)
            return memory, stored, View(spec.shape, spec.strides, 0)
        return node, spec, None
