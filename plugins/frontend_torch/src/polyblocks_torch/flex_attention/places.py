"""Functions of one score and its place, computed for all scores at once.

Such a function is a graph of a number ``score``, of four whole numbers (batch, head, query, key)
and of tensors that it has captured. Here each number becomes a tensor [B, H, L, S], or with extents
of 1 where it does not depend on a dimension, so that the same elementwise operations compute all.
PyTorch nests ``vmap`` four times for that, which gives the same numbers, with more views between
them; it serves where something else than elementwise operations and lookups is met.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, fx

aten = torch.ops.aten

#: Operations on single numbers that PyTorch does not call elementwise.
_OF_NUMBERS = frozenset(
    {
        aten._to_copy.default, aten.alias.default, aten.clone.default, aten.detach.default,
        aten.lift_fresh_copy.default, aten.full_like.default, aten.ones_like.default,
        aten.zeros_like.default,
    }
)  # fmt: skip


class NotElementwise(Exception):
    """A function does something else than elementwise operations and lookups."""


@dataclass(frozen=True)
class Places:
    """The places of scores [B, H, L, S].

    Attributes:
        shape: the extents.
        device: of the tensors.
        indices: of each dimension its numbers, with extents of 1 in the others.
    """

    shape: torch.Size
    device: torch.device
    indices: tuple[Tensor, ...] = field(init=False)

    def __post_init__(self) -> None:
        indices = []
        for dim, extent in enumerate(self.shape):
            kept = [extent if d == dim else 1 for d in range(4)]
            indices.append(torch.arange(extent, device=self.device).view(kept))
        object.__setattr__(self, "indices", tuple(indices))

    def masked(self, function: fx.GraphModule, captured: Sequence[Any]) -> Tensor:
        """Which scores count: booleans that broadcast to the places."""
        (kept,) = self._call(function, [], [], captured)
        return kept

    def modified(self, function: fx.GraphModule, scores: Tensor, captured: Sequence[Any]) -> Tensor:
        """Scores after a function of them; they broadcast to the places."""
        (scores,) = self._call(function, [scores], [], captured)
        return scores

    def gradients(
        self, function: fx.GraphModule, scores: Tensor, grad: Tensor, captured: Sequence[Any]
    ) -> tuple[Tensor, list[Tensor | None]]:
        """Gradients of scores, and of captured tensors, from those of modified scores.

        Args:
            function: of a score, its place, the gradient and captured tensors; its results are
                the gradients of all of these but the gradient.
            scores, grad: [B, H, L, S].
            captured: tensors of any shapes.
        """
        of_scores, _, _, _, _, *others = self._call(function, [scores], [grad], captured)
        return of_scores, [
            # Of a captured number there is one gradient at each place.
            g.sum() if isinstance(g, Tensor) and g.dim() > c.dim() else g
            for g, c in zip(others, captured, strict=True)
        ]

    def _call(
        self,
        function: fx.GraphModule,
        before: list[Tensor],
        after: list[Tensor],
        captured: Sequence[Any],
    ) -> list[Any]:
        placed = [*before, *self.indices, *after]
        try:
            return _Elementwise(function, self.indices).run(placed, captured)
        except NotElementwise:
            return self._mapped(function, before, after, captured)

    def _mapped(
        self,
        function: fx.GraphModule,
        before: list[Tensor],
        after: list[Tensor],
        captured: Sequence[Any],
    ) -> list[Any]:
        """The same by ``vmap``."""
        from torch.nn.attention.flex_attention import _vmap_for_bhqkv

        suffix = (0,) * len(after) + (None,) * len(captured)
        out_dims: Any = [0, *[None] * (4 + len(captured))] if after else 0
        mapped: Callable[..., Any] = _vmap_for_bhqkv(
            fx.Interpreter(function).run,
            prefix=(0,) * len(before),
            suffix=suffix,
            out_dims=out_dims,
        )
        flat = [index.view(-1) for index in self.indices]
        return _listed(mapped(*before, *flat, *after, *captured))


class _Elementwise:
    """Runs a graph of numbers on tensors of four dimensions."""

    def __init__(self, function: fx.GraphModule, indices: Sequence[Tensor]) -> None:
        self.function = function
        self.dims = {id(index): dim for dim, index in enumerate(indices)}
        self.values: dict[fx.Node, Any] = {}
        #: Nodes whose values are one number at each place.
        self.placed: set[fx.Node] = set()

    def run(self, placed: Sequence[Tensor], captured: Sequence[Any]) -> list[Any]:
        """The results; those that are one number at each place have four dimensions."""
        nodes = self.function.graph.find_nodes(op="placeholder")
        self.values.update(zip(nodes, (*placed, *captured), strict=True))
        self.placed.update(nodes[: len(placed)])
        for node in self.function.graph.nodes:
            if node.op == "get_attr":
                self.values[node] = getattr(self.function, node.target)
            elif node.op == "call_function":
                self.values[node] = self._called(node)
        (results,) = self.function.graph.output_node().args
        return _listed(fx.map_arg(results, self.values.__getitem__))

    def _called(self, node: fx.Node) -> Any:
        """The value of an operation; it joins the numbers at places if its operands are."""
        target: Any = node.target
        if self.placed.isdisjoint(node.all_input_nodes):
            args, kwargs = fx.map_arg((node.args, node.kwargs), self.values.__getitem__)
            return target(*args, **kwargs)
        if target is aten.index.Tensor:
            value = self._looked_up(*node.args)
        elif str(target) == "flex_lib.zeros_and_scatter.default":
            return self._scattered(*node.args)
        elif target in _OF_NUMBERS or torch.Tag.pointwise in getattr(target, "tags", ()):
            args, kwargs = fx.map_arg((node.args, node.kwargs), self._number)
            value = target(*args, **kwargs)
        else:
            raise NotElementwise(str(target))
        self.placed.add(node)
        return value

    def _number(self, node: fx.Node) -> Tensor:
        """A number at each place; one that is the same at all has dimensions, too.

        A tensor without dimensions would count less than others where types are chosen.
        """
        value: Tensor = self.values[node]
        if node in self.placed:
            return value
        if not isinstance(value, Tensor) or value.dim():
            raise NotElementwise("a tensor of dimensions among numbers")
        return value.view(1, 1, 1, 1)

    def _looked_up(self, table: Any, indices: Any) -> Tensor:
        """``table[indices]`` for all places; a view where they are places themselves."""
        values = self.values[table]
        if table in self.placed or len(indices) != values.dim() or None in indices:
            raise NotElementwise("a lookup of more than numbers")
        numbers = [self._number(index) for index in indices]
        dims = self._dims(numbers, values.shape)
        if dims is None:
            return aten.index.Tensor(values, numbers)
        for place, number in enumerate(numbers):
            values = values.narrow(place, 0, number.shape[dims[place]])
        values = values.permute(sorted(range(len(dims)), key=dims.__getitem__))
        for dim in range(4):
            if dim not in dims:
                values = values.unsqueeze(dim)
        return values

    def _scattered(self, shape: Any, indices: Any, values: Any) -> Tensor:
        """Zeros to which the values of all places are added at their indices."""
        numbers = [self._number(index) for index in indices]
        added = self._number(values)
        dims = self._dims(numbers, shape)
        if dims is None:
            whole = torch.broadcast_shapes(added.shape, *(n.shape for n in numbers))
            numbers = [number.expand(whole) for number in numbers]
            zeros = torch.zeros(shape, device=added.device, dtype=added.dtype)
            return aten.index_put.default(zeros, numbers, added.expand(whole), True)
        others = [dim for dim in range(4) if dim not in dims]
        kept = added.sum(others) if others else added
        kept = kept.permute([sorted(dims).index(dim) for dim in dims])
        pad = []
        for extent, own in zip(reversed(shape), reversed(kept.shape), strict=True):
            pad += [0, extent - own]
        return aten.constant_pad_nd.default(kept, pad) if any(pad) else kept

    def _dims(self, numbers: Sequence[Tensor], shape: Sequence[int]) -> list[int] | None:
        """The dimensions that indices count, if each counts another one and ends within a shape."""
        dims = [self.dims.get(id(number)) for number in numbers]
        if None in dims or len(set(dims)) < len(dims):
            return None
        extents = (n.shape[d] for n, d in zip(numbers, dims, strict=True))  # type: ignore[index]
        fits = all(own <= extent for own, extent in zip(extents, shape, strict=True))
        return dims if fits else None  # type: ignore[return-value]


def _listed(results: Any) -> list[Any]:
    return list(results) if isinstance(results, (list, tuple)) else [results]
