"""Where the largest elements of windows are, compared as PyTorch compares them.

torch-mlir searches each window for what equals its largest element: where that is NaN nothing does,
and where it is -inf the padding does. Here each window is walked through as PyTorch does it, all
windows at once: an element is taken if it is larger than what was taken before, or NaN::

    %take = or(gt(%element, %best), isnan(%element))
    %best, %position = where(%take, %element, %best), where(%take, 5, %position)

Positions are relative to the window until the end. Of windows with many elements the dimensions are
walked along one after the other: of the first of the largest elements the row is the first one, and
in that it is the first.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.utils import _pytree as pytree

_aten = torch.ops.aten

#: Pools, and how many dimensions their windows have.
_POOLS = {_aten.max_pool2d_with_indices.default: 2, _aten.max_pool3d_with_indices.default: 3}

#: Windows of more elements are walked through one dimension after the other, in fewer steps.
FEW = 9


def find_pool_positions(gm: fx.GraphModule) -> None:
    """Compute positions beside their pools, in place; where nothing uses them nothing changes."""
    for node in list(gm.graph.nodes):
        dims = _POOLS.get(node.target)
        if dims is None:
            continue
        for user in list(node.users):
            if user.target is operator.getitem and user.args[1] == 1 and user.users:
                with gm.graph.inserting_before(user):
                    user.replace_all_uses_with(_Positions(gm, node, dims).run())
                gm.graph.erase_node(user)


class _Positions:
    """The positions of one pool, as nodes at the insertion point of the graph."""

    def __init__(self, gm: fx.GraphModule, pool: fx.Node, dims: int) -> None:
        self.gm = gm
        self.pool = pool
        arguments: tuple[Any, ...] = pool.args
        self.source: fx.Node = arguments[0]
        value = self.source.meta["val"]
        self.dtype = value.dtype
        self.extents = list(value.shape[-dims:])
        self.outputs = list(pool.meta["val"][0].shape[-dims:])
        window: list[Any] = [a for a in arguments[1:5] if isinstance(a, (list, tuple))]
        kernel, stride, padding, dilation = window + [()] * (4 - len(window))
        self.kernel = _each(kernel, dims, [])
        self.stride = _each(stride, dims, self.kernel)
        self.padding = _each(padding, dims, [0] * dims)
        self.dilation = _each(dilation, dims, [1] * dims)
        #: By how many elements a step along each dimension goes on.
        self.weights = [math.prod(self.extents[axis + 1 :]) for axis in range(dims)]
        self.lowest = -math.inf if self.dtype.is_floating_point else torch.iinfo(self.dtype).min

    def run(self) -> fx.Node:
        """Positions in the flattened dimensions of the windows, int64."""
        axes = list(range(len(self.kernel)))
        groups = [axes] if math.prod(self.kernel) <= FEW else [[axis] for axis in reversed(axes)]
        value, position = self.source, None
        for group in groups:
            value, position = self._walk(value, position, group)
        wide = self._emit(_aten._to_copy.default, position, dtype=torch.int64)
        start = self._offsets(self._start, axes, torch.int64)
        return self._emit(_aten.add.Tensor, wide, start)

    def _walk(
        self, value: fx.Node, position: fx.Node | None, axes: list[int]
    ) -> tuple[fx.Node, fx.Node]:
        """Largest elements along some dimensions of the windows, and their positions, int32.

        Args:
            value: the elements; along the dimensions behind ``axes``, windows.
            position: of the elements, as far as the latter go; None is 0.
            axes: the dimensions.
        """
        best = self._number(self.lowest, self.dtype)
        found = self._offsets(self._first_inside, range(axes[0], len(self.kernel)), torch.int32)
        elements = self._elements(self._padded(value, axes, self.lowest), axes)
        inner = {}
        if position is not None:
            inner = dict(self._elements(self._padded(position, axes, 0), axes))
        for place, element in elements:
            take = self._emit(_aten.gt.Tensor, element, best)
            if self.dtype.is_floating_point:
                nan = self._emit(_aten.isnan.default, element)
                take = self._emit(_aten.bitwise_or.Tensor, take, nan)
            offset = sum(p * self.weights[axis] for p, axis in zip(place, axes, strict=True))
            here = self._number(offset, torch.int32)
            if inner:
                here = self._emit(_aten.add.Tensor, inner[place], here)
            best = self._emit(_aten.where.self, take, element, best)
            found = self._emit(_aten.where.self, take, here, found)
        return best, found

    def _elements(self, x: fx.Node, axes: list[int]) -> list[tuple[tuple[int, ...], fx.Node]]:
        """Places in the window in order, in elements, and the elements of all windows there."""
        places = [[k * self.dilation[axis] for k in range(self.kernel[axis])] for axis in axes]
        first = x.meta["val"].dim() - len(self.kernel)

        def sliced(x: fx.Node, axis: int, place: int) -> fx.Node:
            stop = place + (self.outputs[axis] - 1) * self.stride[axis] + 1
            return self._emit(_aten.slice.Tensor, x, first + axis, place, stop, self.stride[axis])

        parts: dict[tuple[int, ...], fx.Node] = {(): x}
        for axis, along in zip(axes, places, strict=True):
            parts = {
                (*done, place): sliced(part, axis, place)
                for done, part in parts.items()
                for place in along
            }
        return [(place, parts[place]) for place in itertools.product(*places)]

    def _padded(self, x: fx.Node, axes: list[int], value: float) -> fx.Node:
        """A tensor with as much around it as windows reach beyond it."""
        widths = [0, 0] * (len(self.kernel) - 1 - axes[-1])
        for axis in reversed(axes):
            reach = (self.outputs[axis] - 1) * self.stride[axis] + 1
            reach += (self.kernel[axis] - 1) * self.dilation[axis]
            before = self.padding[axis]
            widths += [before, max(0, reach - before - self.extents[axis])]
        if not any(widths):
            return x
        return self._emit(_aten.constant_pad_nd.default, x, widths, value)

    def _start(self, axis: int, window: int) -> int:
        """Where a window begins."""
        return window * self.stride[axis] - self.padding[axis]

    def _first_inside(self, axis: int, window: int) -> int:
        """How far the first element that is no padding is from the beginning of a window."""
        step = self.dilation[axis]
        return -(min(0, self._start(axis, window)) // step) * step

    def _offsets(self, along: Any, axes: Sequence[int], dtype: torch.dtype) -> fx.Node:
        """Sums over dimensions of what ``along`` gives for each window, in elements."""
        total = None
        for axis in axes:
            count = self.outputs[axis]
            shape = [1] * len(self.outputs)
            shape[axis] = count
            values = [along(axis, k) * self.weights[axis] for k in range(count)]
            with unset_fake_temporarily():
                part = self._constant(torch.tensor(values, dtype=dtype).reshape(shape))
            total = part if total is None else self._emit(_aten.add.Tensor, total, part)
        assert total is not None
        return total

    def _constant(self, value: torch.Tensor) -> fx.Node:
        number = len(self.gm._buffers)
        while hasattr(self.gm, f"_positions{number}"):
            number += 1
        self.gm.register_buffer(f"_positions{number}", value)
        node = self.gm.graph.get_attr(f"_positions{number}")
        with self._mode:
            node.meta["val"] = torch.empty(value.shape, dtype=value.dtype)
        return self._located(node)

    def _number(self, value: float, dtype: torch.dtype) -> fx.Node:
        return self._emit(_aten.full.default, [], value, dtype=dtype)

    def _emit(self, target: Any, *args: Any, **kwargs: Any) -> fx.Node:
        node = self.gm.graph.call_function(target, args, kwargs)
        operands, options = pytree.tree_map_only(fx.Node, lambda n: n.meta["val"], (args, kwargs))
        with self._mode:
            node.meta["val"] = target(*operands, **options)
        return self._located(node)

    @property
    def _mode(self) -> Any:
        return self.source.meta["val"].fake_mode

    def _located(self, node: fx.Node) -> fx.Node:
        if "stack_trace" in self.pool.meta:
            node.meta["stack_trace"] = self.pool.meta["stack_trace"]
        return node


def _each(given: Sequence[int], dims: int, default: Sequence[int]) -> list[int]:
    """One number for each dimension, of one for all, or none for the default."""
    values = list(given or default)
    return values * dims if len(values) == 1 else values
