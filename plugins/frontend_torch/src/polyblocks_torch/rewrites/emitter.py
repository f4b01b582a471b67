"""Build an FX graph node by node, with the metadata that torch-mlir's importer reads."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily
from torch.utils import _pytree as pytree


class Emitter:
    """Appends nodes to a graph; every node's ``meta["val"]`` is computed on fake tensors."""

    def __init__(self, gm: fx.GraphModule) -> None:
        self.graph = fx.Graph()
        self.module = gm
        self._mode = FakeTensorMode()
        self._origin: fx.Node | None = None
        self._constants = 0

    def begin(self, origin: fx.Node) -> None:
        """Emit replacements of ``origin`` from here on, with its source location."""
        self._origin = origin

    def emit(self, target: Any, *args: Any, **kwargs: Any) -> Any:
        """Append a call of an op overload; its operands may be nodes, in lists too."""
        node = self.graph.call_function(target, args, kwargs)
        operands, options = pytree.tree_map_only(fx.Node, lambda n: n.meta["val"], (args, kwargs))
        with self._mode:
            node.meta["val"] = target(*operands, **options)
        self._locate(node)
        return node

    def constant(self, data: Any, dtype: torch.dtype) -> fx.Node:
        """Append a tensor that is known now, given as such or as nested lists of numbers."""
        name = f"_polyblocks_constant{self._constants}"
        self._constants += 1
        with unset_fake_temporarily():
            value = torch.as_tensor(data, dtype=dtype).contiguous()
            self.module.register_buffer(name, value)
        node = self.graph.get_attr(name)
        node.meta["val"] = self._fake(value)
        self._locate(node)
        return node

    def copy(self, node: fx.Node, values: dict[fx.Node, Any]) -> fx.Node:
        """Append a node of another graph as it is."""
        new = self.graph.node_copy(node, lambda n: values[n])
        new.meta = dict(node.meta)
        if "val" in new.meta:
            new.meta["val"] = pytree.tree_map_only(torch.Tensor, self._fake, new.meta["val"])
        return new

    def _fake(self, value: torch.Tensor) -> torch.Tensor:
        with self._mode:
            return torch.empty_strided(
                value.shape, value.stride(), dtype=value.dtype, device=value.device
            )

    def _locate(self, node: fx.Node) -> None:
        trace = self._origin.meta.get("stack_trace") if self._origin is not None else None
        if trace:
            node.meta["stack_trace"] = trace
